"""More samples of deprecated-function."""

BAD = (
    """\
import torch

l = torch.cholesky(a, upper=True)
""",
    """\
import torch

p = torch.chain_matmul(a, b, c)
""",
    """\
import torch

o = torch.ger(a, b)
""",
    """\
import torch

x = torch.range(0, 10, 3)
""",
    """\
import torch

x = torch.range(1, n - 1, dtype=torch.float32)
""",
    """\
import torch

n = torch.norm(x, p=2, dim=1)
""",
    """\
import torch
from torch import nn

up = nn.UpsamplingBilinear2d(scale_factor=2)
""",
    """\
import torch.nn as nn

nn.init.xavier_uniform(w)
""",
    """\
import functorch
import torch

f = functorch.vmap(g)
""",
    """\
import torch

m = torch.nn.utils.weight_norm(layer)
""",
    """\
import torch

x = torch.lu_solve(b, lu, pivots)
""",
    """\
import torch

u, s, v = torch.svd(a)
""",
)

GOOD = (
    """\
import torch

q, r = torch.linalg.qr(a)
""",
    """\
import torch

for i in range(10):
    x = torch.arange(i)
""",
    """\
import torch

n = x.norm()
m = layer.norm(x)
""",
    """\
import torch.nn as nn

nn.init.xavier_uniform_(w)
""",
    """\
import torch

grad = torch.autograd.grad(y, x)
""",
    """\
import torch

try:
    q = torch.qr(a)
except AttributeError:
    q = torch.linalg.qr(a)
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-l = torch.cholesky(a, upper=True)
+l = torch.linalg.cholesky(a).mH
""",
    """\
@@ -3 +3 @@
-p = torch.chain_matmul(a, b, c)
+p = torch.linalg.multi_dot([a, b, c])
""",
    """\
@@ -3 +3 @@
-o = torch.ger(a, b)
+o = torch.outer(a, b)
""",
    """\
@@ -3 +3 @@
-x = torch.range(0, 10, 3)
+x = torch.arange(0, 11, 3, dtype=torch.get_default_dtype())
""",
    """\
@@ -3 +3 @@
-x = torch.range(1, n - 1, dtype=torch.float32)
+x = torch.arange(1, n, dtype=torch.float32)
""",
    """\
@@ -3 +3 @@
-n = torch.norm(x, p=2, dim=1)
+n = torch.linalg.vector_norm(x, ord=2, dim=1)
""",
    """\
@@ -4 +4 @@
-up = nn.UpsamplingBilinear2d(scale_factor=2)
+up = nn.Upsample(scale_factor=2, mode='bilinear', align_corners=True)
""",
    """\
@@ -3 +3 @@
-nn.init.xavier_uniform(w)
+nn.init.xavier_uniform_(w)
""",
    """\
@@ -4 +4 @@
-f = functorch.vmap(g)
+f = torch.func.vmap(g)
""",
    "",
    """\
@@ -3 +3 @@
-x = torch.lu_solve(b, lu, pivots)
+x = torch.linalg.lu_solve(lu, pivots, b)
""",
    "",
)
