"""More samples of removed-function-import."""

BAD = (
    """\
from torch._six import string_classes, int_classes
""",
    """\
import torch._six
""",
)

GOOD = (
    """\
from torch.linalg import solve
""",
    """\
try:
    from torch._six import inf
except ImportError:
    from math import inf

import torch
""",
    """\
import torch
from scipy.linalg import lstsq
""",
)
