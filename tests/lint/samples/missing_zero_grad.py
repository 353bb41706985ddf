"""More samples of missing-zero-grad."""

BAD = (
    """\
import torch

def train(model, loader, scaler):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    opt.zero_grad()
    for x, y in loader:
        loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
""",
    """\
import torch

def train(actor, critic, loader):
    actor_opt = torch.optim.Adam(actor.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    for state, reward in loader:
        critic_loss = (critic(state) - reward).pow(2).mean()
        critic_loss.backward()
        critic_opt.step()
        actor_opt.zero_grad()
        actor_loss = -critic(actor(state)).mean()
        actor_loss.backward()
        actor_opt.step()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = model(x, y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            model.zero_grad(set_to_none=True)
""",
    """\
import torch

class Loop:
    def clear(self):
        for p in self.model.parameters():
            p.grad = None

    def fit(self, loader):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in loader:
            self.clear()
            self.model(x, y).backward()
            optimizer.step()
""",
    """\
import torch

def fit(model, loader):
    optimizer = torch.optim.LBFGS(model.parameters())
    for x, y in loader:
        def closure():
            optimizer.zero_grad()
            loss = model(x, y)
            loss.backward()
            return loss
        optimizer.step(closure)
""",
    """\
import torch

for trial in range(10):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2)).sum().backward()
    optimizer.step()
""",
    """\
import torch

def train(model, loader, lr):
    w = model.weight
    opt = torch.optim.SGD([w], lr)
    for x, y in loader:
        model(x, y).backward()
        opt.step()
        w.grad.data.zero_()
""",
    """\
import torch

def train(G, D, loader):
    opt_g = torch.optim.Adam(G.parameters())
    opt_d = torch.optim.Adam(D.parameters())
    for real in loader:
        D.zero_grad()
        D(real).mean().backward()
        opt_d.step()
        opt_g.zero_grad()
        D(G(real)).mean().backward()
        opt_g.step()
""",
    """\
import torch

def train(model, loader):
    slow = torch.optim.SGD(model.parameters(), lr=0.1)
    fast = torch.optim.Adam(model.parameters())
    for i, x in enumerate(loader):
        slow.zero_grad()
        model(x).mean().backward()
        if i < 100:
            fast.step()
        else:
            slow.step()
""",
    """\
import torch

def train(G, D, loader, opt_g, opt_d):
    for real in loader:
        for opt in (opt_g, opt_d):
            opt.zero_grad()
        opt_g.zero_grad()
        D(G(real)).mean().backward()
        opt_g.step()
        opt_d.step()
""",
)

FIXED = (
    """\
@@ -7,0 +8 @@
+        opt.zero_grad()
""",
    "",
)
