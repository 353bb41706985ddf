import time
import torch


def bench(model, batches):
    fast = torch.compile(model, mode="reduce-overhead")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    start = time.perf_counter()
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(fast(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return time.perf_counter() - start


def compare(models, batches):
    for name, model in models.items():
        print(name, bench(model, batches))
