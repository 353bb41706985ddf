"""Communication that was started, and what comes of it when it is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.futures import Future

from torchstone.dryrun.ranks.posts import Post
from torchstone.dryrun.ranks.process.link import Link
from torchstone.dryrun.ranks.process.values import from_bytes
from torchstone.dryrun.session import is_fake
from torchstone.observe.compat.groups import Work
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes

_Work: Any = Work  # torch's stubs give it signatures that its own callers do not keep


class DryWork(_Work):  # type: ignore[misc]
    """A communication that was started. Its outputs are filled when it is waited for."""

    def __init__(
        self, link: Link, post: Post, outputs: Sequence[torch.Tensor], result: Any, real: bool
    ) -> None:
        super().__init__()
        self.link = link
        self.post = post
        self.awaited = False
        self._outputs = list(outputs)
        self.results = frozenset(int(item.untyped_storage()._cdata) for item in outputs)
        """Storages that get a new value."""
        self.buffers = self.results
        """Storages that may not be written to before it has been waited for."""
        self._result = result
        self._real = real

    def use(self, inputs: Sequence[torch.Tensor]) -> None:
        """These are read while it runs."""
        self.buffers |= {int(item.untyped_storage()._cdata) for item in inputs}

    def wait(self, timeout: Any = None) -> bool:
        if not self.awaited:
            self.awaited = True
            fill(self.link, self._outputs, self.link.wait(self.post.number))
        return True

    def get_future(self) -> Any:
        """C++ asks for this; with fake tensors there is no value to wait for."""
        if self._real:
            self.wait()
        self.awaited = True
        future: Future[Any] = Future()
        future.set_result(self._result)
        return future

    def is_completed(self) -> bool:
        return self.awaited

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> Any:
        return self._result

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return max(self.post.peer, 0)

    _source_rank = source_rank


def fill(link: Link, outputs: list[torch.Tensor], value: bytes | None) -> None:
    """Put the bytes of a result into the outputs; without bytes they are unknown from now on."""
    if value is None:
        for tensor in outputs:
            if not is_fake(tensor):
                link.mark_stale(tensor)
        return
    at = 0
    for tensor in outputs:
        size = tensor.numel() * tensor.element_size()
        piece, at = value[at : at + size], at + size
        if is_fake(tensor) or len(piece) != size or not size:
            continue
        with torch.no_grad(), disable_modes(), DisableTorchFunction():
            tensor.copy_(from_bytes(piece, dtype_name(tensor)).reshape(tensor.shape))
        link.mark_known(tensor)


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


class _AllWork(DryWork):
    """Several communications that are waited for as one."""

    def __init__(self, link: Link, works: list[Work]) -> None:
        last = works[-1]
        assert isinstance(last, DryWork)
        super().__init__(link, last.post, [], last._result, last._real)
        self._works = works

    def wait(self, timeout: Any = None) -> bool:
        self.awaited = True
        for work in self._works:
            work.wait()
        return True


def all_of(link: Link, works: list[Work]) -> Work:
    return _AllWork(link, works)
