import torch
import torch.distributed as dist
import torch.nn.functional as F
from metrics import is_main_process, log, reduce_mean


def train(model, loader, sampler, optimizer, device, epochs):
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros((), device=device)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        mean = reduce_mean(total / len(loader), device)
        if is_main_process():
            print(f"epoch {epoch}: {mean.item():.4f}")
        log(f"done {epoch}")
    dist.barrier()
