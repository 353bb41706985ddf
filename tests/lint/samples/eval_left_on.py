"""More samples of eval-left-on."""

BAD = (
    """\
import torch

def validate(net, valid):
    net.eval()
    with torch.no_grad():
        return sum(net(x, y).item() for x, y in valid)

def fit(model, loader, valid, optimizer, epochs):
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
        print(validate(model, valid))
""",
    """\
import torch

model = build()
optimizer = torch.optim.AdamW(model.parameters())

@torch.no_grad()
def estimate_loss():
    model.eval()
    return sum(model(x).item() for x in valid) / len(valid)

def train(steps):
    for it in range(steps):
        if it % 100 == 0:
            print(estimate_loss())
        loss = model(batch(it))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
)

GOOD = (
    """\
import torch

def train(net, loader, optimizer):
    net.train()
    for x, y in loader:
        optimizer.zero_grad()
        net(x, y).backward()
        optimizer.step()

def validate(net, valid):
    net.eval()

def main(model, loader, valid, optimizer):
    for epoch in range(3):
        train(model, loader, optimizer)
        validate(model, valid)
""",
    """\
import torch

def distill(model, teacher, loader, optimizer):
    for x, y in loader:
        teacher.eval()
        with torch.no_grad():
            t = teacher(x)
        optimizer.zero_grad()
        model(x, t).backward()
        optimizer.step()
""",
    """\
import torch

def tune(model, loader, optimizer):
    model.eval()
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
""",
    """\
import torch

def train(loader, model, optimizer):
    model.eval()
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()

def validate(model, valid):
    model.eval()

def main(model, loader, valid, optimizer):
    for epoch in range(3):
        train(loader, model, optimizer)
        validate(model, valid)
""",
    """\
import torch

def fit(model, loader, valid, optimizer):
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
        if step == 1000:
            model.eval()
            break
""",
)
