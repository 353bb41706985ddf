"""More samples of accumulated-loss-not-divided."""

BAD = (
    """\
import torch

class Trainer:
    def train(self):
        for step in range(self.steps):
            for i in range(self.gradient_accumulate_every):
                loss = self.model(next(self.data))
                loss.backward()
            self.opt.step()
            self.opt.zero_grad()
""",
)

GOOD = (
    """\
import torch

def train(model, loader, criterion, opt, args):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if args.gradient_accumulation_steps > 1:
            loss = loss / args.gradient_accumulation_steps
        loss.backward()
        if (i + 1) % args.gradient_accumulation_steps == 0:
            opt.step()
            opt.zero_grad()
""",
    """\
import torch

def train(model, loader, criterion, opt, log_every):
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        if i % log_every == 0:
            print(loss.item())
""",
    """\
import torch

def train(model, loader, criterion, opt, accum_steps):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) * (1.0 / accum_steps)
        loss.backward()
        if (i + 1) % accum_steps == 0:
            opt.step()
            opt.zero_grad()
""",
)

FIXED = (
    """\
@@ -8 +8 @@
-                loss.backward()
+                (loss / self.gradient_accumulate_every).backward()
""",
)
