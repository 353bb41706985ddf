"""More samples of kept-loss-graph."""

BAD = (
    """\
import torch

def train(model, loader, criterion, opt):
    losses = torch.zeros(len(loader))
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses[step] = loss
    return losses
""",
    """\
import torch

def train(model, loader, criterion, opt, scaler):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        losses.append(loss)
    return losses
""",
    """\
import torch

def train(model, loader, criterion, opt):
    running = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        running = running + loss * x.size(0)
    return running
""",
    """\
import torch

def train(model, loader, criterion, opt, logs):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        logs["loss"] += loss
""",
    """\
import torch

def train(model, loader, criterion, opt):
    total = torch.zeros(1)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        total.add_(loss)
    return total
""",
    """\
import torch

def train(model, loader, criterion, opt):
    smooth = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        smooth = 0.9 * smooth + 0.1 * loss
    return smooth
""",
    """\
import torch

class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

def train(model, loader, criterion, opt):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        meter.update(loss, len(x))
    return meter
""",
    """\
import torch

def train(model, loader, opt):
    total = 0.0
    for x, y in loader:
        first, second = model(x, y)
        first_loss, second_loss = first.mean(), second.mean()
        loss = first_loss + second_loss
        loss.backward()
        opt.step()
        total += second_loss
    return total
""",
)

GOOD = (
    """\
import torch

def train(model, loader, criterion, opt):
    losses, last = {}, {}
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        last["loss"] = loss
        losses[step] = loss.item()
    return losses, last
""",
    """\
import torch

def train(model, loader, criterion, opt):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        total += loss.detach()
    return total
""",
    """\
import torch

def train(model, batches, criterion, opt, micro_batches):
    total = 0.0
    for x, y in batches:
        loss = criterion(model(x), y)
        (loss / micro_batches).backward()
        total += loss.detach() / micro_batches
    opt.step()
    return total
""",
    """\
import torch

def train(model, loader, terms, opt):
    for x, y in loader:
        loss = 0.0
        for term in terms:
            loss += term(model(x), y)
        loss.backward()
        opt.step()
""",
    """\
import torch

def train(model, loader, criterion, opt):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        loss = loss.item()
        losses.append(loss)
""",
    """\
import torch

def unroll(model, sequence, criterion, opt):
    loss = 0.0
    for i, (x, y) in enumerate(sequence):
        loss += criterion(model(x), y)
        if i % 8 == 7:
            loss.backward()
            opt.step()
            loss = 0.0
""",
    """\
import torch

def collect(model, loader, criterion, opt):
    losses = []
    for x, y in loader:
        losses.append(criterion(model(x), y))
    torch.stack(losses).mean().backward()
    opt.step()
""",
    """\
import collections
import torch

def train(model, loader, criterion, opt):
    recent = collections.deque(maxlen=20)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        recent.append(loss)
""",
    """\
import torch

class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += float(value) * n
        self.count += n

def train(model, loader, criterion, opt):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        meter.update(loss, len(x))
    return meter
""",
    """\
import torch

def train(model, loader, optimizer, metrics, accumulation):
    for batch in loader:
        policy_loss = model(batch)
        loss_scale_factor = batch["mask"].shape[0] / accumulation.size
        loss = policy_loss * loss_scale_factor
        loss.backward()
        metrics["loss"] += policy_loss.detach() * loss_scale_factor
        optimizer.step()
        optimizer.zero_grad()
""",
)

FIXED = (
    """\
@@ -10 +10 @@
-        losses[step] = loss
+        losses[step] = loss.detach()
""",
    """\
@@ -10 +10 @@
-        losses.append(loss)
+        losses.append(loss.detach())
""",
    """\
@@ -9 +9 @@
-        running = running + loss * x.size(0)
+        running = running + loss.detach() * x.size(0)
""",
    """\
@@ -8 +8 @@
-        logs["loss"] += loss
+        logs["loss"] += loss.detach()
""",
    """\
@@ -9 +9 @@
-        total.add_(loss)
+        total.add_(loss.detach())
""",
    """\
@@ -9 +9 @@
-        smooth = 0.9 * smooth + 0.1 * loss
+        smooth = 0.9 * smooth + 0.1 * loss.detach()
""",
    """\
@@ -17 +17 @@
-        meter.update(loss, len(x))
+        meter.update(loss.detach(), len(x))
""",
    """\
@@ -11 +11 @@
-        total += second_loss
+        total += second_loss.detach()
""",
)
