"""More samples of limit-rounds-to-one."""

BAD = (
    """\
import torch

def limit(p, eps=1e-12):
    return p.clamp(eps, 1 - eps)
""",
)

GOOD = (
    """\
import torch

def limit(p, eps=1e-12):
    return p.double().clamp(eps, 1 - eps)
""",
)
