import torch
import torch.nn.functional as F


class Runner:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt

    def epoch(self, loader):
        total_loss = 0
        for x, y in loader:
            out = self.model(x)
            loss = F.cross_entropy(out, y) + 1e-4 * sum(p.abs().sum() for p in self.model.parameters())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total_loss += loss  # FAULT: kept-loss-graph
        return total_loss / len(loader)

    def multi_task(self, heads, x, ys):
        # a sum that is meant to carry its graph
        total = 0
        for head, y in zip(heads, ys):
            total += F.cross_entropy(head(self.model(x)), y)
        self.opt.zero_grad()
        total.backward()
        self.opt.step()
