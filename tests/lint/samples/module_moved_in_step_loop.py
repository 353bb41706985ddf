"""More samples of module-moved-in-step-loop."""

GOOD = (
    """\
import torch

def train(model, loader, opt, device):
    model.to(device)
    for x in loader:
        loss = model(x.to(device)).mean()
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(model, teacher_model, loader, opt, device):
    for x in loader:
        teacher_model.to(device)
        target = teacher_model(x.to(device))
        teacher_model.to('cpu')
        loss = (model(x.to(device)) - target).pow(2).mean()
        loss.backward()
        opt.step()
""",
)
