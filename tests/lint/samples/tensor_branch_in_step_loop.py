"""More samples of tensor-branch-in-step-loop."""

BAD = (
    """\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        if torch.isnan(loss).any():
            continue
        loss.backward()
        opt.step()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        loss = torch.where(loss > 100, loss * 0.1, loss)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
        if step % 100 == 0 and loss > 100:
            raise ValueError('diverged')
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        out = model(x.to(device))
        loss = criterion(out, y.to(device))
        if loss is not None and out.shape[0] > 1 and loss.dim() > 0:
            loss = loss.mean()
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
    if loss > 100:
        print('diverged')
""",
)
