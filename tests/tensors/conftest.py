"""One thread: small operators on a busy machine take ten times as long with two."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread_for_all() -> None:
    torch.set_num_threads(1)
