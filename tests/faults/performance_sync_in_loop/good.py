import time
import torch


def train(model, loader, opt, loss_fn):
    model.train()
    t0 = time.time()
    for i, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            torch.cuda.synchronize()
            print(f"{(time.time() - t0) / (i + 1) * 1e3:.1f} ms/step")
    torch.cuda.synchronize()
    return time.time() - t0
