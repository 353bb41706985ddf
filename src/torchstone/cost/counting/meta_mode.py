"""The dispatch mode of a meta run: counts every operator and answers it from a cache.

The meta kernel of an operator runs once per distinct metadata; later calls get a fresh tensor of
the remembered shape. That makes a counted pass faster than a bare one.
"""

from __future__ import annotations

from typing import Any

import torch

from torchstone.cost.counting.higher_order import run_higher_order
from torchstone.cost.counting.shapes import ONE_FORMAT, SHAPES, check_formats
from torchstone.cost.operators import (
    COMPOSITE,
    HIGHER_ORDER,
    IN_PLACE,
    RESHAPE,
    VIEW,
    Operator,
    operator_of,
)
from torchstone.cost.operators import (
    KNOWN as _OPERATORS,
)
from torchstone.cost.records.books import Books, Entry, Pages, Scope, priced
from torchstone.observe.compat.autograd import graph_task
from torchstone.observe.compat.modes import TorchDispatchMode
from torchstone.observe.compat.trees import tree_map_only
from torchstone.runtime.modules import Paths
from torchstone.runtime.on_meta.attention import attend
from torchstone.runtime.on_meta.content import Content, adopted
from torchstone.runtime.on_meta.kept import Kept
from torchstone.runtime.on_meta.storage import Storages

_Tensor = torch.Tensor
_META = torch.device("meta")
_empty = torch.empty_strided
_aten = torch.ops.aten
# What an operator costs and gives depends on metadata alone, so runs share it: a sweep or the
# stages of a model meet the same operators again and again.
_ENTRIES: dict[Any, Entry] = {}
_MOST_ENTRIES = 50_000


class MetaMode(TorchDispatchMode):
    """Counts operators on the page of the module that runs."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the guard against the compiler costs as much as counting itself

    def __init__(self, paths: Paths[Scope], books: Books, content: Content) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.paths, self.books, self.content = paths, books, content
        self.storages = Storages()
        self.kept = Kept()
        self.timeline: list[tuple[str, int, int]] = []
        """Phase, bytes alive and bytes of activations after every operator that made something."""
        self.last = ""
        """The operator that was called last: where a failure happened."""
        if len(_ENTRIES) > _MOST_ENTRIES:
            _ENTRIES.clear()
        self._entries = _ENTRIES
        self.scope = Pages(paths, books).current
        """The page for an operator that is called now."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        operator = _OPERATORS.get(id(func)) or operator_of(func)
        if operator.kind == VIEW:
            return operator.call(*args, **kwargs) if kwargs else operator.call(*args)
        self.last = operator.name
        if operator.plain and not kwargs:  # nearly all that is no view
            parts: list[Any] = [operator]
            if _describe(args, parts, 0) == _META_SEEN:
                key = tuple(parts)
                return self._known(operator, func, args, _NONE, key, self._entries.get(key))
        return self._with_care(operator, func, args, kwargs)

    def _with_care(
        self, operator: Operator, func: Any, args: Any, kwargs: dict[str, Any] | None
    ) -> Any:
        """The call with its device, its masks and its real tensors looked at."""
        kind = operator.kind
        if kind == RESHAPE:
            self.kept.before_reshape(args[0])
            return operator.call(*args, **(kwargs or {}))
        if kind in (HIGHER_ORDER, COMPOSITE):
            return self._through(operator, func, args, kwargs or {})
        on_meta = False
        if kwargs is None:
            kwargs = {}
        elif kwargs:
            device = kwargs.get("device")
            on_meta = device is not None and device.type == "meta"
            if device is not None and device.type != "meta":
                if operator.name == "aten._to_copy" and device.type == "cpu":
                    real = self.content.to_cpu(args[0], kwargs)
                    if real is not None:
                        return real
                kwargs = {**kwargs, "device": _META}
                kwargs.pop("pin_memory", None)
            elif device is None and operator.placed:
                kwargs = {**kwargs, "device": _META}
        elif operator.placed:
            kwargs = {"device": _META}
        if operator.bare and kwargs.get("dtype") in _WHOLE and not on_meta:
            # numbers for the host: C++ code writes into them by address
            return func(*args, **{**kwargs, "device": torch.device("cpu")})
        if operator.asks:
            return self._special(operator, func, args, kwargs)
        if operator.selects:
            args = (args[0], self.content.selected(args[1]), *args[2:])
        parts: list[Any] = [operator]
        seen = _describe(args, parts, 0)
        if kwargs:
            seen = _describe(kwargs.values(), parts, seen)
        if seen & _REAL:
            if not seen & _META_SEEN:  # real values among themselves stay real
                return self._real(operator, func, args, kwargs)
            if seen & _WIDE:
                args, kwargs = adopted(self.content, (args, kwargs))
                parts = [operator]
                _describe(args, parts, 0)
                _describe(kwargs.values(), parts, 0)
        if kwargs:
            parts.extend(kwargs)
        key = tuple(parts)
        entry = self._entries.get(key)
        if kind == IN_PLACE:
            return self._in_place(operator, func, args, kwargs, key, entry)
        return self._known(operator, func, args, kwargs, key, entry)

    def _known(
        self, operator: Operator, func: Any, args: Any, kwargs: Any, key: Any, entry: Entry | None
    ) -> Any:
        """What an operator gives, from its entry when there is one."""
        paths = self.paths
        if paths.depth_in_backward or graph_task() == -1:
            scope = paths.current
        else:
            scope = self.scope()
        if entry is None:
            return self._first(operator, func, args, kwargs, key, scope)
        out = self._fresh(entry, scope)
        scope.calls[entry] += 1
        if entry.followed and (entry.followed == 2 or self.content.shadows.floats):
            self.content.follow(func, args, kwargs, out, key)
        return out

    def _fresh(self, entry: Entry, scope: Scope) -> Any:
        storages = self.storages
        if entry.many is None:
            made = entry.outputs[0]
            if made.__class__ is not tuple:
                return made
            size, stride, dtype, count = made
            out = _empty(size, stride, dtype=dtype, device=_META)
            live = storages.made(out, count, scope)
            if live > scope.peak:
                scope.peak = live
            self.timeline.append((scope.phase, live, storages.activations))
            return out
        outputs: list[Any] = []
        for made in entry.outputs:
            if made.__class__ is not tuple:
                outputs.append(made)
                continue
            size, stride, dtype, count = made
            out = _empty(size, stride, dtype=dtype, device=_META)
            storages.made(out, count, scope)
            outputs.append(out)
        self.note(scope)
        return entry.many(outputs)

    def note(self, scope: Scope) -> None:
        """Take down how much memory is in use now."""
        storages = self.storages
        live = storages.live
        if live > scope.peak:
            scope.peak = live
        self.timeline.append((scope.phase, live, storages.activations))

    def _first(
        self, operator: Operator, func: Any, args: Any, kwargs: Any, key: Any, scope: Scope
    ) -> Any:
        """The first call with such metadata: run the meta kernel, work out what it costs."""
        if operator.name in ONE_FORMAT:
            check_formats(operator.name, args)
        shape = SHAPES.get(operator.name)
        out = shape(args, kwargs) if shape else None
        if out is None:
            out = self._tried(func, args, kwargs)
        entry = priced(operator, args, kwargs, out)
        whole = not isinstance(out, (tuple, list))
        entry.many = None if whole else type(out)
        outputs = (out,) if whole else tuple(out)
        entry.outputs = tuple(_made(item) for item in outputs)
        entry.followed = _followed(func, args, kwargs, outputs, self.content)
        if all(not isinstance(item, (list, tuple)) for item in outputs):
            self._entries[key] = entry
        for item in outputs:
            if isinstance(item, _Tensor):
                self.storages.watch(item, "activation", scope)
        self.note(scope)
        scope.calls[entry] += 1
        if entry.followed:
            self.content.follow(func, args, kwargs, out, key)
        return out

    def _tried(self, func: Any, args: Any, kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except RuntimeError:
            # some meta kernels refuse a number on the CPU beside meta tensors; GPUs take it
            args, kwargs = adopted(self.content, (args, kwargs), numbers=True)
            return func(*args, **kwargs)

    def _in_place(
        self, operator: Operator, func: Any, args: Any, kwargs: Any, key: Any, entry: Entry | None
    ) -> Any:
        """Nothing is made and, on meta, nothing has to be done: it is only counted."""
        target = kwargs[operator.by_name] if operator.by_name in kwargs else args[operator.written]
        if entry is None:
            if operator.checked:
                self._tried(func, args, kwargs)
            entry = self._entries[key] = priced(operator, args, kwargs, target)
        self.scope().calls[entry] += 1
        targets = target if isinstance(target, (list, tuple)) else (target,)
        for item in targets:
            if item.dtype not in _FLOATS or self.content.shadows.floats:
                self.content.write(func, args, kwargs, item)
        return target if operator.returns else None

    def _real(self, operator: Operator, func: Any, args: Any, kwargs: Any) -> Any:
        """Real tensors only (step counters, small constants): the operator itself runs, on the
        host and not on the device, so it is not counted."""
        for position, name in operator.writes:
            if name in kwargs or position < len(args):
                self.kept.before_write(kwargs[name] if name in kwargs else args[position])
        to_meta = kwargs.get("device") == _META
        if to_meta:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        out = func(*args, **kwargs)
        return adopted(self.content, out) if to_meta else out

    def _special(self, operator: Operator, func: Any, args: Any, kwargs: Any) -> Any:
        """An operator that asks for content."""
        out = self.content.answer(func, args, kwargs)
        if not args[0].is_meta:
            return out
        scope = self.scope()
        for item in out if isinstance(out, tuple) else (out,):
            if isinstance(item, _Tensor) and item.is_meta:
                self.storages.watch(item, "activation", scope)
        self.note(scope)
        scope.calls[priced(operator, args, kwargs, out)] += 1
        return out

    def _through(self, operator: Operator, func: Any, args: Any, kwargs: Any) -> Any:
        """An operator made of others: they are counted in its place."""
        if operator.kind == HIGHER_ORDER:
            return run_higher_order(self, operator, func, args, kwargs)
        with self:
            if func is _aten.scaled_dot_product_attention.default:
                return attend(*args, **kwargs)
            return func.decompose(*args, **kwargs)


_WHOLE = frozenset({torch.int64, torch.int32, torch.uint8, torch.bool})
_FLOATS = frozenset({torch.float32, torch.float16, torch.bfloat16, torch.float64})


_META_SEEN, _REAL, _WIDE = 1, 2, 4
_NONE: dict[str, Any] = {}


def _describe(values: Any, parts: list[Any], seen: int) -> int:
    """Add what matters of the arguments to a key; say which kinds of tensors are among them."""
    for value in values:
        kind = value.__class__
        if kind is _Tensor or isinstance(value, _Tensor):
            if value.is_meta:
                seen |= _META_SEEN
            else:
                seen |= _REAL | _WIDE if value.dim() else _REAL
            parts += (value.shape, value.stride(), value.dtype)
        elif kind is int:
            parts.append(value)
        elif kind is list or kind is tuple:
            parts.append(len(value))
            seen = _describe(value, parts, seen)
        else:
            parts += (value, kind)
    return seen


def _made(item: Any) -> Any:
    if not isinstance(item, _Tensor):
        return item
    return (item.shape, item.stride(), item.dtype, item.untyped_storage().nbytes())


def _followed(func: Any, args: Any, kwargs: Any, outputs: Any, content: Content) -> int:
    """Whether to follow the content: 0 never, 1 when contents of floats are known, 2 always."""
    if torch.Tag.nondeterministic_seeded in func.tags:
        return 0
    tensors = [item for item in outputs if isinstance(item, _Tensor)]
    if not any(content.follows(item) for item in tensors):
        return 0
    found: list[_Tensor] = []
    tree_map_only(_Tensor, found.append, (args, kwargs))
    integral = any(item.dtype not in _FLOATS for item in found)
    return 2 if not found or integral or content.chooses(func) else 1
