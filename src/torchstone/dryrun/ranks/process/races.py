"""Buffers that are written or read while an asynchronous collective uses them."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.core.text import Text
from torchstone.dryrun.ranks.process.link import Link
from torchstone.dryrun.ranks.process.work import DryWork
from torchstone.dryrun.session import tensors_in
from torchstone.dryrun.shapes.history import function_name, operands_of
from torchstone.observe.where import PROGRAM

_WRITES = frozenset(("__setitem__", "__iadd__", "__imul__", "__isub__", "__itruediv__"))
_LOOKS = frozenset(
    "size dim numel stride is_contiguous data_ptr element_size view reshape flatten detach "
    "__len__ untyped_storage storage_offset type device shape requires_grad_ __repr__ __format__".split()
)
"""What asks about a tensor, or gives another look at it, reads none of its values."""


class Races:
    """Looks at each call between the start of a collective and its `wait`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def check(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        link = self._link
        if not link.open_works:
            return
        link.open_works = [work for work in link.open_works if not work.awaited]
        name = func.__name__
        of_torch = (getattr(func, "__module__", None) or "").startswith("torch.distributed")
        if not link.open_works or of_torch or name in _LOOKS or PROGRAM.library(3):
            return
        writes = name in _WRITES or (name.endswith("_") and not name.endswith("__"))
        written = tensors_in(*args[:1]) if writes else []
        for work in link.open_works:
            if isinstance(work, DryWork):
                self._check_work(work, func, args, kwargs, written)

    def _check_work(
        self,
        work: DryWork,
        func: Any,
        args: Any,
        kwargs: dict[str, Any],
        written: list[torch.Tensor],
    ) -> None:
        if any(_storage(item) in work.buffers for item in written):
            said = Text("writes to a buffer", "写入了缓冲区")
        elif any(_storage(item) in work.results for item in tensors_in(*args, *kwargs.values())):
            said = Text("reads a buffer", "读取了缓冲区")
        else:
            return
        post = work.post
        at = post.stack[0] if post.stack else ""
        self._link.session.hazard(
            "DR611",
            function_name(func),
            lambda: operands_of(func, args, kwargs),
            Text(
                f"{said.en} that {post.op} at {at} is still using: it was not waited for",
                f"{said.zh}，而 {at} 处的 {post.op} 仍在使用它：尚未等待其完成",
            ),
        )


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
