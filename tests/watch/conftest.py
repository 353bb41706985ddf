"""Small models gain nothing from threads, and lose much on a loaded machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from torchstone.watch.listen import hooks
from torchstone.watch.read.fused import Fused, load_fused


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def cache_of_all(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("watch-cache"))


@pytest.fixture(autouse=True)
def one_cache(own_cache: None, cache_of_all: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that a test starts find the C pass built by the first of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", cache_of_all)


@pytest.fixture(scope="session")
def built() -> Fused:
    found = load_fused()
    assert isinstance(found, Fused), found
    return found


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """A watch that a test forgot must not listen to the next one."""
    yield
    for reference in tuple(hooks._listening):
        if (listener := reference()) is not None:
            hooks.unlisten(listener)
