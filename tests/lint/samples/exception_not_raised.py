"""More samples of exception-not-raised."""

BAD = (
    """\
import torch

class ConfigurationError(Exception):
    pass

def build(kind):
    if kind not in ("plain", "sharded"):
        ConfigurationError(f"{kind}: unknown dataset type")
    return torch.zeros(3)
""",
)
FIXED = (
    """\
@@ -8 +8 @@
-        ConfigurationError(f"{kind}: unknown dataset type")
+        raise ConfigurationError(f"{kind}: unknown dataset type")
""",
)
GOOD = (
    """\
import torch
from metrics import RelativeError

def measure(model, x):
    RelativeError(model)
    error = ValueError("kept for later")
    return model(x), error
""",
)
