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
from torch import outer

o = outer(a, b)
""",
    """\
from torch.nn.init import xavier_normal_ as start, zeros_

start(w)
zeros_(b)
""",
    "",
)
