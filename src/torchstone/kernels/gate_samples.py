"""The parts that kernels shown by gates have in common: a gate writes down what is its own."""

from __future__ import annotations

from textwrap import indent

_MODEL = """class ModelNew(torch.nn.Module):
    def forward(self, x):
"""
_LAUNCHED = """        x = x.contiguous()
        y = torch.empty_like(x)
        {launch}
        return y
"""


def torch_sample(body: str) -> str:
    """A candidate whose `forward(self, x)` has this body."""
    return f"import torch\n\n\n{_MODEL}{indent(body, ' ' * 8)}"


def c_sample(functions: str) -> str:
    """A candidate around C functions of which `relu(x, y, n)` is called."""
    head = f"import torch\nfrom torchstone_kernel import library\n\nC_SOURCE = r'''\n{functions}'''"
    return f"{head}\n\n\n{_MODEL}{_LAUNCHED.format(launch='library.relu(x, y, x.numel())')}"


def triton_relu(kernel: str) -> str:
    """A candidate around a Triton kernel `relu(x, y, n, BLOCK)`, launched in blocks of 256."""
    head = "import torch\nimport triton\nimport triton.language as tl"
    launch = "relu[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)"
    return f"{head}\n\n\n{kernel}\n\n{_MODEL}{_LAUNCHED.format(launch=launch)}"
