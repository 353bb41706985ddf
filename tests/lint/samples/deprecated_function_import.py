"""More samples of deprecated-function-import."""

BAD = (
    """\
from torch import ger

o = ger(a, b)
""",
    """\
from torch.nn.init import xavier_normal as start, zeros_

start(w)
zeros_(b)
""",
    """\
from torch import qr

q, r = qr(a)
""",
)

GOOD = (
    """\
from torch import outer

o = outer(a, b)
""",
    """\
try:
    from functorch import vmap
except ImportError:
    from torch.func import vmap

import torch
""",
    """\
import torch
from numpy.linalg import qr, norm, cholesky
""",
)

FIXED = (
    """\
@@ -1 +1 @@
-from torch import ger
+from torch import outer
@@ -3 +3 @@
-o = ger(a, b)
+o = outer(a, b)
""",
    """\
@@ -1 +1 @@
-from torch.nn.init import xavier_normal as start, zeros_
+from torch.nn.init import xavier_normal_ as start, zeros_
""",
    "",
)
