"""More samples of optimizer-made-in-step-loop."""

GOOD = (
    """\
import torch

def invert(model, images):
    for image in images:
        z = torch.zeros(8, requires_grad=True)
        optimizer = torch.optim.Adam([z])
        for _ in range(100):
            optimizer.zero_grad()
            (model(z) - image).pow(2).sum().backward()
            optimizer.step()
""",
    """\
import torch

def trials(loader):
    for x, y in loader:
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(x).sum().backward()
        optimizer.step()
""",
    """\
import torch

def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
)
