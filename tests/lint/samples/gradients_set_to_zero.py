"""More samples of gradients-set-to-zero."""

BAD = (
    """\
import torch

model = torch.nn.Linear(2, 2)
model.zero_grad(False)
""",
)

GOOD = (
    """\
import torch

def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    """\
import torch

def step(optimizer, loss):
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
""",
    """\
import torch

def step(optimizer, loss, drop):
    optimizer.zero_grad(set_to_none=drop)
    loss.backward()
""",
    """\
import torch

class Wrapped:
    def zero_grad(self, set_to_none=False):
        self.inner.reset(set_to_none=set_to_none)
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-model.zero_grad(False)
+model.zero_grad(True)
""",
)
