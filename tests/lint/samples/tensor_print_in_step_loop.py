"""More samples of tensor-print-in-step-loop."""

BAD = (
    """\
import torch

def train(model, loader, criterion, opt, bar):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        bar.set_description(f'loss {loss:.3f}')
""",
    """\
import torch

def train(objective, batches, opt, device):
    for number, batch in enumerate(batches):
        total = objective(batch, device).sum() / 4
        total.backward()
        opt.step()
        print(f'{number}: {total}')
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
        if step % 100 == 0:
            print(f'{step}: {loss:.3f}')
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
        print(f'step {step}', x.shape, loss.dtype)
""",
    """\
import torch

def train(model, loader, criterion, opt, device):
    for epoch in range(9):
        for x, y in loader:
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            opt.step()
        print(epoch, loss)
""",
    """\
import torch

def train(objective, batches, opt, device):
    for batch in batches:
        total = objective(batch, device).sum() / 4
        total.backward()
        opt.step()
        total = read_later(total)
        print(f'{total}')
""",
)
