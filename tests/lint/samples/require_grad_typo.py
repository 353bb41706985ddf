"""More samples of require-grad-typo."""

BAD = (
    """\
import torch

x = torch.ones(2)
x.require_grad = True
""",
)

GOOD = (
    """\
import torch

class Config:
    def __init__(self, require_grad):
        self.require_grad = require_grad
""",
    """\
import torch

def set_up(config, p):
    config.require_grad = True
    p.requires_grad = config.require_grad
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-x.require_grad = True
+x.requires_grad = True
""",
)
