"""What is said about a torch that lacks something."""

from __future__ import annotations

import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text


class TorchTooOldError(UsageError):
    """Something that the loaded torch cannot do, with the version that can."""

    def __init__(self, what: str, since: str) -> None:
        super().__init__(
            what,
            f"torch {torch.__version__}",
            Text(f"torch {since} or newer", f"torch {since} 或更新版本"),
            f'pip install "torch>={since}"',
        )
