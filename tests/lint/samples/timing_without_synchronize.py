"""More samples of timing-without-synchronize."""

GOOD = (
    """\
import time
import torch

@torch.no_grad()
def measure_latency(model, x):
    model.cuda().eval()
    start = time.time()
    out = model(x.cuda()).cpu()
    return out, time.time() - start
""",
    """\
import time
import torch

def train(model, loader, opt):
    end = time.time()
    for x in loader:
        loss = model(x.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(time.time() - end)
        end = time.time()
""",
)
