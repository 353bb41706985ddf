"""More samples of host-copy-in-step-loop."""

BAD = (
    """\
import torch

def train(net, loader, criterion, optimizer):
    predictions = []
    for x, y in loader:
        logits = net(x.cuda())
        loss = criterion(logits, y.cuda())
        loss.backward()
        optimizer.step()
        predictions += torch.argmax(logits, dim=1).tolist()
    return predictions
""",
)

GOOD = (
    """\
import torch

def train(model, loader, criterion, opt, device):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(loss.cpu())
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        lengths = y.tolist()
        loss = criterion(model(x.to(device), lengths), y.to(device))
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for epoch in range(3):
        for x, y in loader:
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            opt.step()
        print(epoch, loss.cpu())
    model.cpu()
""",
    """\
import numpy as np
import torch

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        order = np.random.permutation(len(x)).tolist()
        loss = criterion(model(x[order].to(device)), y[order].to(device))
        loss.backward()
        opt.step()
""",
)
