"""More samples of inference-tensor-in-training."""

GOOD = (
    """\
import torch

def step(model, teacher, x, opt):
    with torch.inference_mode():
        target = teacher(x)
    loss = (model(x) - target.clone()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    """\
import torch

def train(model, loader, valid, opt):
    for x in loader:
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
    with torch.inference_mode():
        score = model(valid).mean()
    print(score.item())
""",
)
