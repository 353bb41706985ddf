"""One workshop for all tests of a worker: loading torch and triton once is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchstone.kernels.workshop import Workshop


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    with Workshop(("numpy", "torch", "triton", "numba")) as ready:
        yield ready
