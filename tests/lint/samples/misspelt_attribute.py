"""More samples of misspelt-attribute."""

BAD = (
    """\
import argparse
import torch

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float)
    args = parser.parse_args()
    return torch.optim.SGD([], lr=args.learnign_rate)
""",
)
FIXED = (
    """\
@@ -8 +8 @@
-    return torch.optim.SGD([], lr=args.learnign_rate)
+    return torch.optim.SGD([], lr=args.learning_rate)
""",
)
GOOD = (
    """\
import torch

class Config:
    loss = "l1"
    embed_dim = 8
    conv1 = 3

def build(config, library):
    return config.losses, config.embed_dims, config.conv2, library.normalise, library.close
""",
    """\
import torch
from torch.distributions import Normal

def resample(mean):
    return Normal(mean, 1.0).rsample()
""",
)
