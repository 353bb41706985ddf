"""The versions of torch that are supported, and what is said about the others."""

from __future__ import annotations

import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text

OLDEST = (2, 6)
"""The oldest that `make matrix` runs every tool on; see docs/versions.md."""


def torch_version() -> tuple[int, int]:
    """Major and minor version of the torch that is loaded; local and pre-release parts left out."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


class TorchTooOldError(UsageError):
    """Something that the loaded torch cannot do, with the version that can."""

    def __init__(self, what: str, since: str) -> None:
        super().__init__(
            what,
            f"torch {torch.__version__}",
            Text(f"torch {since} or newer", f"torch {since} 或更新版本"),
            f'pip install "torch>={since}"',
        )
