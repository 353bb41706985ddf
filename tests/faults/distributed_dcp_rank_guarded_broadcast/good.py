import torch
import torch.distributed as dist


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def update(self, value):
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)
        return self.bad >= self.patience


def loop(run_epoch, validate, epochs, device):
    stopper = EarlyStopping(3)
    master_process = dist.get_rank() == 0
    for epoch in range(epochs):
        run_epoch(epoch)
        stop = torch.zeros(1, device=device)
        if master_process:
            stop += float(stopper.update(validate()))
        dist.broadcast(stop, src=0)
        if stop.item() > 0:
            break
