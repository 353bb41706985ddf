"""Operators whose result depends on what a tensor holds, answered on the meta device.

What is known is used; what is not is assumed, and every assumption is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, ValuesView
from typing import Any

import torch

from torchstone.core.text import Text
from torchstone.observe.compat.trees import tree_leaves, tree_map_only
from torchstone.runtime.on_meta.shadow import FLOAT_LIMIT, LIMIT, Shadows, balanced

_META = torch.device("meta")
_CPU = torch.device("cpu")
_aten = torch.ops.aten
SELECTING = frozenset(
    {
        _aten.index.Tensor,
        _aten.index_put.default,
        _aten.index_put_.default,
        _aten._unsafe_index.Tensor,
        _aten._unsafe_index_put.default,
        _aten._index_put_impl_.default,
    }
)
"""Operators whose indices may be masks."""
_PATIENCE = 20_000
"""Unknown values that may be asked for: a loop that waits for one would never end."""

ASSUMPTIONS = {
    "balanced-routing": Text(
        "the choice among {choices} (experts, classes) is taken to be balanced",
        "在 {choices} 个选项（专家、类别）之间的选择按均衡分布处理",
    ),
    "fused-attention": Text(
        "attention is counted and sized as the fused kernel that a GPU runs ({kernel})",
        "注意力按 GPU 实际运行的融合内核（{kernel}）统计与计量",
    ),
    "autocast": Text(
        "an autocast region casts to {dtype} by PyTorch's lists for GPUs",
        "autocast 区域按 PyTorch 的 GPU 列表转换为 {dtype}",
    ),
    "copied-layers": Text(
        "{count} layers equal to this one were copied, not run; the first two and the last agree",
        "与此层相同的 {count} 层为复制而非运行；前两层与最后一层一致",
    ),
    "unknown-value": Text(
        "the code asks for the value of a tensor that only the data decide; taken as {value}",
        "代码需要一个只有数据才能决定的张量值；按 {value} 处理",
    ),
    "all-selected": Text(
        "a mask that only the data decide is taken to select everything",
        "只有数据才能决定的掩码按全部选中处理",
    ),
    "first-branch": Text(
        "of two branches that only the data choose between, the first is taken",
        "两个分支的选择取决于数据，按第一个分支处理",
    ),
    "all-distinct": Text(
        "values that only the data decide are taken to be all different",
        "只有数据才能决定的取值按互不相同处理",
    ),
}


class EndlessWaitError(RuntimeError):
    """The code asks for unknown values again and again: it waits for something in the data."""


class Content:
    """What tensors hold, as far as it is known; and what to say when it is not."""

    def __init__(self, assume: Callable[[str, dict[str, str]], None]) -> None:
        self.shadows = Shadows()
        self._assume = assume
        self._asked = 0

    def tell(self, assumption: str) -> None:
        self._assume(assumption, {})

    def decide(self, predicate: Any) -> bool:
        """Whether the first of two branches is taken: by what is known, else it is."""
        if not isinstance(predicate, torch.Tensor):
            return bool(predicate)
        value = self.shadows.get(predicate)
        if value is None:
            self.tell("first-branch")
        return True if value is None else bool(value.item())

    def answer(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator of `ASKING` gives."""
        return _ANSWERS[func](self, *args, **kwargs)

    @staticmethod
    def chooses(func: Any) -> bool:
        """Does the operator pick positions by values?"""
        return func in _CHOOSING

    @staticmethod
    def follows(tensor: torch.Tensor) -> bool:
        """Is the content of such a tensor worth following?"""
        return _followed(tensor)

    # known contents

    def adopt(self, tensor: torch.Tensor) -> torch.Tensor:
        """A meta tensor in place of a real one; small contents stay known."""
        stand_in = torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=_META
        )
        limit = FLOAT_LIMIT if tensor.is_floating_point() else LIMIT
        if tensor.numel() <= limit and not tensor.is_complex() and tensor.numel():
            self.shadows.set(stand_in, tensor.detach())
        return stand_in

    def follow(self, func: Any, args: Any, kwargs: Any, out: Any, key: Any) -> None:
        """After a call on meta tensors: is the content of its output known? `key` stands for the
        operator and the metadata of its arguments."""
        outputs = [item for item in _flat((out,)) if isinstance(item, torch.Tensor)]
        if not any(_followed(item) for item in outputs):
            return
        inputs = [item for item in _flat((args, kwargs.values())) if isinstance(item, torch.Tensor)]
        names = self.shadows.names(inputs)
        asked = (key, names)
        if names is not None and self.shadows.recall(asked, outputs):
            return
        self._work_out(func, args, kwargs, outputs)
        if names is not None:
            self.shadows.keep(asked, inputs, outputs)

    def _work_out(self, func: Any, args: Any, kwargs: Any, outputs: list[torch.Tensor]) -> None:
        known = self.shadows.arguments(args, kwargs)
        if known is None:
            if func in _CHOOSING:
                self._chosen(args[0], outputs)
            return
        if "device" in known[1]:
            known[1]["device"] = torch.device("cpu")
        known[1].pop("pin_memory", None)
        real = _ON_CPU.get(func, func)
        values = tree_leaves(real(*known[0], **known[1]))
        for item, value in zip(outputs, values, strict=True):
            if _followed(item) and item.shape == value.shape:
                self.shadows.set(item, value)

    def write(self, func: Any, args: Any, kwargs: Any, target: torch.Tensor) -> None:
        """An operator in place: the content changes with it, or is no longer known."""
        if target not in self.shadows:
            if getattr(func, "_opname", "") in _OVERWRITING and _followed(target):
                self._overwritten(func, args, kwargs, target)
            return
        self.shadows.before_write(target)
        known = self.shadows.arguments(args, kwargs)
        if known is None or torch.Tag.nondeterministic_seeded in func.tags:
            self.shadows.forget(target)
        else:
            func(*known[0], **known[1])

    def _overwritten(self, func: Any, args: Any, kwargs: Any, target: torch.Tensor) -> None:
        """`fill_`, `zero_`, `copy_`, `arange(out=)`: known afterwards even if not before."""
        if target.untyped_storage().nbytes() != target.numel() * target.element_size():
            return  # a part of a larger storage: the rest stays unknown
        rest = self.shadows.arguments(args[1:], {k: v for k, v in kwargs.items() if k != "out"})
        if rest is not None and "out" not in kwargs:
            value = torch.zeros(target.shape, dtype=target.dtype, device=_CPU)
            func(value, *rest[0], **rest[1])
            self.shadows.set(target, value)

    # answers

    def _item(self, tensor: torch.Tensor) -> Any:
        value = self.shadows.get(tensor)
        if value is not None:
            return value.item()
        self._asked += 1
        if self._asked > _PATIENCE:
            raise EndlessWaitError(
                f"the code asked {_PATIENCE} times for a value that only the data decide"
            )
        answer: Any = 0
        if tensor.dtype == torch.bool:
            answer = False
        elif tensor.is_floating_point():
            answer = 0.0
        self._assume("unknown-value", {"value": str(answer)})
        return answer

    def _equal(self, left: torch.Tensor, right: torch.Tensor) -> bool:
        known = self.shadows.arguments((left, right), {})
        if known is not None:
            return torch.equal(*known[0])
        self._assume("unknown-value", {"value": "False"})
        return False

    def _packed(self, padded: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> Any:
        """Rows of all sequences in turn, and how many there are at each time: a real tensor on the
        CPU, as the recurrent layers want it."""
        real = self.shadows.get(lengths)
        steps, batch = (padded.shape[1], padded.shape[0]) if batch_first else padded.shape[:2]
        if real is None:
            self._assume("all-selected", {})
            real = torch.full((batch,), steps, dtype=torch.long, device=_CPU)
        sizes = (real[None, :] > torch.arange(int(real.max()), device=_CPU)[:, None]).sum(1)
        rows = torch.empty(int(real.sum()), *padded.shape[2:], dtype=padded.dtype, device=_META)
        return rows, sizes

    def _unpacked(
        self, gradient: torch.Tensor, size: Any, sizes: torch.Tensor, batch_first: bool
    ) -> torch.Tensor:
        return torch.empty(tuple(size), dtype=gradient.dtype, device=_META)

    def _known_or(self, tensor: torch.Tensor, assumption: str) -> torch.Tensor | None:
        value = self.shadows.get(tensor)
        if value is None:
            self._assume(assumption, {})
        return value

    def meta(self, value: torch.Tensor) -> torch.Tensor:
        return self.adopt(value)

    def _nonzero(self, tensor: torch.Tensor) -> torch.Tensor:
        value = self._known_or(tensor, "all-selected")
        if value is None:
            if tensor.numel() > LIMIT:
                return torch.empty(tensor.numel(), tensor.dim(), dtype=torch.long, device=_META)
            value = torch.ones(tensor.shape, dtype=torch.bool, device=_CPU)
        return self.meta(value.nonzero())

    def _masked_select(self, tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shape = torch.broadcast_shapes(tensor.shape, mask.shape)
        value = self._known_or(mask, "all-selected")
        if value is None:
            count = shape.numel()
        else:
            count = int(value.expand(shape).sum().item())
        return torch.empty(count, dtype=tensor.dtype, device=_META)

    def selected(self, indices: Any) -> Any:
        """Indices with masks turned into positions, as the operator itself would do it."""
        result: list[Any] = []
        for index in indices:
            if index is not None and index.dtype in (torch.bool, torch.uint8):
                if not index.is_meta:
                    index = self.adopt(index)
                result += self._nonzero(index).unbind(1)
            else:
                result.append(index)
        return result

    def _unique(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        value = self._known_or(tensor, "all-distinct")
        if value is None:
            value = torch.arange(tensor.numel(), device=_CPU).reshape(tensor.shape)
        return self._like(_aten._unique2.default(value, True, True, True), tensor.dtype)

    def _like(self, values: Any, dtype: torch.dtype) -> Any:
        first, *rest = values
        return (self.meta(first.to(dtype)), *(self.meta(item) for item in rest))

    def _bincount(self, tensor: torch.Tensor, weights: Any = None, minlength: int = 0) -> Any:
        value = self.shadows.get(tensor)
        if value is None:
            self._assume("balanced-routing", {"choices": str(minlength)})
            value = balanced(tensor.shape, max(minlength, 1))
        return self.meta(torch.bincount(value, minlength=minlength))

    def _repeat(self, repeats: torch.Tensor, *, output_size: int | None = None) -> Any:
        value = self.shadows.get(repeats)
        if value is None:
            self._assume("unknown-value", {"value": "1"})
            value = torch.ones(repeats.shape, dtype=torch.long, device=_CPU)
            if output_size:
                return torch.empty(output_size, dtype=torch.long, device=_META)
        return self.meta(torch.repeat_interleave(value.long()))

    def _chosen(self, source: torch.Tensor, outputs: list[torch.Tensor]) -> None:
        """Positions picked from unknown values: dealt out in turn."""
        index = outputs[-1]
        if index.dtype != torch.long or index.numel() > LIMIT or not source.dim():
            return
        choices = source.shape[-1]
        self._assume("balanced-routing", {"choices": str(choices)})
        asked = (index.shape, index.stride(), choices)
        if not self.shadows.recall(asked, [index]):
            self.shadows.set(index, balanced(index.shape, choices))
            self.shadows.keep(asked, [], [index])

    def to_cpu(self, tensor: torch.Tensor, kwargs: Any) -> torch.Tensor | None:
        """The real tensor, when it is asked onto the CPU and its content is known."""
        value = self.shadows.get(tensor)
        if value is None:
            return None
        rest = {k: v for k, v in kwargs.items() if k in ("dtype", "memory_format")}
        return _aten._to_copy.default(value, **rest)  # type: ignore[no-any-return]


_ANSWERS: dict[Any, Callable[..., Any]] = {
    _aten._local_scalar_dense.default: Content._item,
    _aten.is_nonzero.default: lambda content, tensor: bool(content._item(tensor)),
    _aten.nonzero.default: Content._nonzero,
    _aten.masked_select.default: Content._masked_select,
    _aten._unique2.default: Content._unique,
    _aten.unique_dim.default: Content._unique,
    _aten.unique_consecutive.default: Content._unique,
    _aten.bincount.default: Content._bincount,
    _aten.repeat_interleave.Tensor: Content._repeat,
    _aten.equal.default: Content._equal,
    _aten._pack_padded_sequence.default: Content._packed,
    _aten._pack_padded_sequence_backward.default: Content._unpacked,
}
ASKING = frozenset(_ANSWERS)
"""Operators that answer with real values or with shapes that depend on them."""
_CHOOSING = frozenset(
    {
        _aten.topk.default,
        _aten.sort.default,
        _aten.sort.stable,
        _aten.argsort.default,
        _aten.argmax.default,
        _aten.argmin.default,
        _aten.max.dim,
        _aten.min.dim,
        _aten.multinomial.default,
    }
)


def _histogram(values: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.histc(values.double(), *args, **kwargs).to(values.dtype)


# operators that a GPU has for integers and the CPU has not
_ON_CPU: dict[Any, Callable[..., Any]] = {_aten.histc.default: _histogram}
_OVERWRITING = frozenset({"fill_", "zero_", "copy_"})


def _flat(values: Any) -> Iterator[Any]:
    """What stands in arguments or outputs, lists and tuples opened."""
    for value in values:
        if isinstance(value, (list, tuple, ValuesView)):
            yield from _flat(value)
        else:
            yield value


def _followed(tensor: torch.Tensor) -> bool:
    if tensor.is_complex() or not tensor.numel():
        return False
    return tensor.numel() <= (FLOAT_LIMIT if tensor.is_floating_point() else LIMIT)


def adopted(content: Content, args: Any, numbers: bool = False) -> Any:
    """Arguments with every real tensor replaced by a meta one; single numbers only if asked."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta or not (tensor.dim() or numbers):
            return tensor
        return content.adopt(tensor)

    return tree_map_only(torch.Tensor, one, args)
