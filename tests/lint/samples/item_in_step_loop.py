"""More samples of item-in-step-loop."""

BAD = (
    """\
import torch

def train(model, loader, criterion, optimizer, bar):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        bar.set_postfix(loss=float(loss))
""",
    """\
import torch

def train_step(model, batch, optimizer, device):
    loss = model(batch.to(device)).loss
    loss.backward()
    optimizer.step()
    return loss.item()
""",
    """\
import torch

def accuracy(out, y):
    return (out.argmax(-1) == y).float().mean().item()

def train(model, loader, criterion, opt, device):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss = criterion(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(accuracy(out, y))
""",
)

GOOD = (
    """\
import torch

def train(model, loader, opt, device):
    for x, length in loader:
        n = length.max().item()
        loss = model(x[:, :n].to(device)).loss
        loss.backward()
        opt.step()
""",
    """\
import torch

def play(policy, env, opt, device):
    state = env.reset()
    while True:
        action = policy(state.to(device)).argmax()
        state, reward = env.step(action.item())
        loss = -reward * policy.log_prob
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(q, env, opt, steps):
    s = env.reset()
    for _ in range(steps):
        a = q(torch.as_tensor(s, device="cuda")).argmax().item()
        s, r, done, _, info = env.step(a)
        loss = td_error(q, s, a, r)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(model, loader, opt, device):
    for step, x in enumerate(loader):
        loss = model(x.to(device)).loss
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())
""",
    """\
import torch

def evaluate(model, loader, device):
    total = 0.0
    for x in loader:
        total += model(x.to(device)).sum().item()
    return total
""",
    """\
import torch

def train(model, loader, opt, device):
    for x in loader:
        loss = model(x.to(device)).loss
        loss.backward()
        opt.step()
    return loss.item()
""",
    """\
import numpy as np
import torch

def train(model, loader, opt, device):
    for x in loader:
        lam = np.random.beta(0.2, 0.2)
        loss = model(x.to(device) * float(lam)).loss
        loss.backward()
        opt.step()
""",
    """\
import torch

def fit(model, xs, opt):
    for x in xs:
        loss = model(x).sum()
        loss.backward()
        opt.step()
        print(loss.item())
""",
)

FIXED = (
    "",
    "",
    "",
)
