"""More samples of scheduler-before-optimizer."""

BAD = (
    """\
import torch

def fit(model, loader, optimizer, epochs):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    for epoch in range(epochs):
        scheduler.step()
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
""",
    """\
import torch

def fit(model, loader, optimizer, scheduler, scaler):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scheduler.step()
        scaler.step(optimizer)
        scaler.update()
""",
)

GOOD = (
    """\
import torch

def fit(model, loader, optimizer, scheduler):
    for x, y in loader:
        optimizer.zero_grad()
        model(x, y).backward()
        optimizer.step()
        scheduler.step()
""",
    """\
import torch

def fit(model, loader, optimizer, scheduler, epochs):
    for epoch in range(epochs):
        if epoch > 0:
            scheduler.step()
        for x, y in loader:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()
""",
    """\
import torch

def sample(unet, scheduler, optimizer, latents):
    for t in scheduler.timesteps:
        latents = scheduler.step(unet(latents, t), t, latents).prev_sample
        latents.sum().backward()
        optimizer.step()
""",
)

FIXED = (
    "",
    """\
@@ -9 +8,0 @@
-        scheduler.step()
@@ -11,0 +11 @@
+        scheduler.step()
""",
)
