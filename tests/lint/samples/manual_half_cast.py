"""More samples of manual-half-cast."""

BAD = (
    """\
import torch

scaler = torch.amp.GradScaler()

def step(x, w):
    x = x.half()
    return x @ w
""",
    """\
import torch

class Head(torch.nn.Module):
    def forward(self, x):
        x = self.norm(x).bfloat16()
        return self.out(x)

def evaluate(head, x):
    with torch.autocast("cuda"):
        return head(x)
""",
    """\
import torch

model = Net().cuda()
model.half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
""",
    """\
import torch

class Head(torch.nn.Module):
    def forward(self, x):
        return self.out(self.norm(x).half())
""",
)

GOOD = (
    """\
import torch

def step(x, w):
    with torch.autocast('cuda'):
        return x @ w
""",
    """\
import torch

model = load()
model.half().eval()
print(model(x))
""",
    """\
import torch

def step(model, x):
    with torch.no_grad():
        return model(x.half())
""",
    """\
import torch

def step(x, w):
    with torch.autocast('cuda', enabled=False):
        return x.half() @ w
""",
    """\
import torch

class Net(torch.nn.Module):
    def forward(self, x, w):
        if w.dtype == torch.float16:
            x = x.half()
        return x @ w
""",
    """\
import torch

def save(model, path):
    weights = model.state_dict()
    torch.save({k: v.half() for k, v in weights.items()}, path)

def train(model, x):
    model(x).sum().backward()
""",
    """\
import torch

teacher = build().half().eval()

def train(model, x):
    (model(x) - teacher(x)).sum().backward()
""",
    """\
import copy
import torch

def train(model, loss, path):
    loss.backward()
    torch.save({"model": copy.deepcopy(model).half()}, path)
""",
    """\
import torch

vae = build_vae()
vae.requires_grad_(False)
vae.half()

def train(model, x):
    model(vae.encode(x)).sum().backward()
""",
    """\
import torch

def train_one_epoch(model, loader, loss_scaler):
    for x, y in loader:
        if loss_scaler is None:
            x = x.half()
            loss = model(x, y)
            model.backward(loss)
        else:
            with torch.autocast("cuda"):
                loss = model(x, y)
            loss_scaler(loss)
""",
    """\
import torch

scaler = torch.amp.GradScaler()

def strip(checkpoint):
    checkpoint["model"].half()
    for p in checkpoint["model"].parameters():
        p.requires_grad = False
    return checkpoint
""",
    """\
import torch
import torch.nn.functional as F

class Diffusion(torch.nn.Module):
    def forward(self, image, noise):
        latents = self.vae.encode(image.half()).sample()
        return F.mse_loss(self.unet(latents), noise)
""",
)

FIXED = (
    """\
@@ -6 +5,0 @@
-    x = x.half()
""",
    """\
@@ -5 +5 @@
-        x = self.norm(x).bfloat16()
+        x = self.norm(x)
""",
    """\
@@ -4 +3,0 @@
-model.half()
""",
    """\
@@ -5 +5 @@
-        return self.out(self.norm(x).half())
+        return self.out(self.norm(x))
""",
)
