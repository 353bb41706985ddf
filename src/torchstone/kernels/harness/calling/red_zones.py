"""Red zones: every buffer stands inside a larger one whose margins nobody may touch or need."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import torch

from torchstone.kernels.harness.calling.unwritten import fill_as_unwritten
from torchstone.kernels.harness.values import dtype_of, from_raw, plain_place
from torchstone.kernels.messages.facts import BrokenZone
from torchstone.kernels.messages.trees import Tree
from torchstone.observe.compat.arrays import byte_bounds

MARGIN_BYTES = 16 << 10
_TORCH = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like",
          "empty_strided")  # fmt: skip
_TENSOR = ("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided")
_NUMPY = ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like")
_empty, _zeros_like = torch.empty, torch.zeros_like


@dataclass(slots=True)
class Zone:
    """One buffer with its margins and what the margins held."""

    name: str
    whole: torch.Tensor
    start: int
    end: int
    before: torch.Tensor
    after: torch.Tensor


@dataclass(slots=True)
class Zones:
    """The buffers of one call. `fill` names what stands in margins and in unwritten memory."""

    fill: str = "nan"
    active: bool = False
    allocate: Callable[[int, torch.dtype], torch.Tensor] = lambda count, dtype: _empty(
        count, dtype=dtype
    )
    """Where buffers come from."""
    zones: list[Zone] = field(default_factory=list)

    def filler(self, dtype: torch.dtype) -> float | int | bool:
        """What the margins hold: something that shows when it is read."""
        if dtype.is_floating_point or dtype.is_complex:
            return float("nan") if self.fill == "nan" else 6e4
        if dtype == torch.bool:
            return self.fill == "nan"
        return 85 if self.fill == "nan" else 51

    def make(
        self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, name: str,
        offset: int = 0,
    ) -> torch.Tensor:  # fmt: skip
        """A view into the middle of a new buffer; its own elements are unwritten memory, too."""
        size = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        margin = MARGIN_BYTES // dtype.itemsize
        start = margin + offset
        whole = self.allocate(start + size + margin, dtype)
        if self.fill != "nan" or not fill_as_unwritten(whole):
            whole.fill_(self.filler(dtype))
        before, after = whole[:start], whole[start + size :]
        self.zones.append(Zone(name, whole, start, start + size, before.clone(), after.clone()))
        return whole.as_strided(shape, stride, start)

    def place(self, tree: Tree, data: bytes) -> object:
        """An input in a buffer of its own, with the strides that were asked for."""
        if tree.kind in ("scalar", "mindspore"):
            return plain_place(tree, data)
        shape, stride = tuple(tree.shape), tuple(tree.stride)
        source = from_raw(data, tree.dtype, shape)
        dtype = dtype_of(tree.dtype)
        view = self.make(shape, stride, dtype, f"input {tree.buffer}", tree.offset)
        for dim, step in enumerate(stride):
            if step == 0 and shape[dim]:  # what repeats itself is written once
                view, source = view.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
        view.copy_(source)
        view = view.expand(shape)
        return view if tree.kind == "torch" else view.numpy()

    def broken(self) -> list[BrokenZone]:
        """Buffers whose margins were written."""
        found = []
        for zone in self.zones:
            sides = (("before", zone.whole[: zone.start], zone.before),
                     ("after", zone.whole[zone.end :], zone.after))  # fmt: skip
            for side, now, then in sides:
                changed = now.view(torch.uint8) != then.view(torch.uint8)
                if bool(changed.any()):
                    count = int(changed.reshape(-1, now.element_size()).any(dim=1).sum())
                    found.append(BrokenZone(zone.name, side, count))
        return found

    def clear(self) -> None:
        """Forget the buffers of the last call."""
        self.zones.clear()

    def _made(self, original: Callable[..., Any], name: str, args: Any, kwargs: Any) -> object:
        """A buffer with margins, shaped as the original function would have shaped it."""
        if not self.active:
            return original(*args, **kwargs)
        self.active = False
        try:
            device = torch.device(kwargs.get("device") or "cpu").type
            if device != "cpu" or kwargs.get("out") is not None:
                return original(*args, **kwargs)
            shape = original(*args, **{**kwargs, "device": "meta"})
            view = self.make(tuple(shape.shape), tuple(shape.stride()), shape.dtype, "allocated")
            if "zeros" in name:
                view.zero_()
            elif "ones" in name:
                view.fill_(1)
            elif "full" in name:
                # the value stands where the original function has it
                view.copy_(original(*args, **kwargs))
            return view.requires_grad_(bool(kwargs.get("requires_grad")))
        finally:
            self.active = True

    def install(self) -> None:
        """torch's functions that allocate give buffers with margins while a call runs."""
        for home, names in ((torch, _TORCH), (torch.Tensor, _TENSOR)):
            for name in names:
                original = getattr(home, name)

                def made(
                    *args: object, _f: Any = original, _n: str = name, **kwargs: Any
                ) -> object:
                    return self._made(_f, _n, args, kwargs)

                setattr(home, name, made)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is allocated inside has no margins: it belongs to whoever runs the kernel."""
        before, self.active = self.active, False
        try:
            yield
        finally:
            self.active = before

    @contextlib.contextmanager
    def numpy_patched(self) -> Iterator[None]:
        """numpy's, too, but only while Python code runs: compilers know them by identity."""
        with contextlib.ExitStack() as stack:
            for name in _NUMPY:
                made = self._numpy_maker(name, getattr(np, name))
                stack.enter_context(mock.patch.object(np, name, made))
            yield

    def _numpy_maker(self, name: str, original: Callable[..., Any]) -> Callable[..., object]:
        def made(*args: object, **kwargs: object) -> object:
            plain = original(*args, **kwargs)
            simple = plain.flags.c_contiguous and plain.dtype.kind in "fiub" and plain.ndim
            if not self.active or not simple or type(plain) is not np.ndarray:
                return plain
            self.active = False
            try:
                dtype = torch.from_numpy(plain).dtype
                stride = tuple(step // plain.itemsize for step in plain.strides)
                view = self.make(plain.shape, stride, dtype, "allocated").numpy()
                if not name.startswith("empty"):
                    view[...] = plain
                return view
            finally:
                self.active = True

        return made


def bound_views() -> None:
    """`as_strided` of numpy stays inside of the memory of its array: numpy itself does not look."""
    home: Any = importlib.import_module("numpy.lib.stride_tricks")
    original = home.as_strided

    def as_strided(x: object, *args: object, **kwargs: object) -> Any:
        found = original(x, *args, **kwargs)
        owner = np.asarray(x)
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        (low, high), (first, last) = byte_bounds(owner), byte_bounds(found)
        if found.size and not low <= first <= last <= high:
            raise ValueError("as_strided reaches beyond the memory of its array")
        return found

    home.as_strided = as_strided
