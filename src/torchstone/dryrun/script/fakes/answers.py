"""Answers to questions that only real values could answer; each is written down with its line."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.core.text import Text
from torchstone.dryrun.eager.values import KnownValues
from torchstone.dryrun.eager.verdicts import Verdicts
from torchstone.dryrun.eager.writes import count_writes, written_tensors
from torchstone.dryrun.script.fakes.assertions import asserted_value
from torchstone.dryrun.script.fakes.lazy import fake_input, is_pretend, make_fake
from torchstone.dryrun.session import Session, TensorFaked, is_fake, tensors_in
from torchstone.dryrun.shapes.history import step_of
from torchstone.observe.compat.autograd import current_node
from torchstone.observe.compat.fakes import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
)
from torchstone.observe.compat.modes import TorchDispatchMode, fake_mode_on_top
from torchstone.observe.compat.operators import HigherOrderOperator
from torchstone.observe.compat.trees import tree_map_only
from torchstone.observe.where import PROGRAM

aten = torch.ops.aten

LARGE = 1 << 20
"""Factories above a million elements give fake tensors: below it real ones cost less than 10 ms."""

_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)
_ALL = ("Tensor.all", "torch.all", "torch._is_all_true", "torch.isfinite", "Tensor.isfinite")
_DEVICE = torch.ops.prim.device.default
_EQUAL = (aten.equal.default,)
_PACK = aten._pack_padded_sequence.default
_IS_VALUE, _SIZE_IS_VALUE = object(), object()
"""In the place of results that a fake kernel cannot give. No exception of its own is under way when the
values are looked at: what is raised then is the program's error alone."""


class Answers(TorchDispatchMode):
    """Sees every operator, in the forward and in the backward."""

    supports_higher_order_operators = True

    def __init__(self, session: Session) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.session = session
        self._stale: set[StorageWeakRef] = set()
        """Real storages into which a fake value was written: what they hold is out of date."""
        self._verdicts = Verdicts(session.settings.play_ranks and session.settings.cuda)
        self.known = KnownValues(self.is_stale)
        self.observers: list[Callable[[Any, Any, Any, Any], None]] = []
        """Are told of every operator that had a fake input or made a fake tensor."""
        self.functional: Callable[[Any, Any], Callable[[Any], None]] | None = None
        """Is told of functional collectives on fake tensors, where ranks are played, and gives back
        who is to be told of the result."""
        self.with_choices: Callable[[Any, Any, Any], Any] | None = None
        """Puts real indices into a result, where ranks are played."""
        self.blank: set[StorageWeakRef] | None = None
        """Real storages that hold no values yet, where ranks are played."""

    def play_rank(self, with_choices: Callable[[Any, Any, Any], Any]) -> None:
        """From now on this is one of several ranks."""
        self.blank, self.with_choices = set(), with_choices

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would wrap this mode for the compiler, which never runs over it: a third of its time."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for kind in types:
            if kind not in _PLAIN:  # DTensor and its like take themselves apart first
                return NotImplemented
        if isinstance(func, HigherOrderOperator):
            with self.session.mode:
                return func(*args, **(kwargs or {}))
        other = fake_mode_on_top()
        if other is not None and other is not self.session.mode:
            return func(
                *args, **(kwargs or {})
            )  # DTensor works out shapes in a fake mode of its own
        if func is _DEVICE:  # asked for each attribute `device` of a fake tensor
            return func(*args)
        kwargs = _with_plain_cpu(kwargs) if kwargs else {}
        self.session.counts.add("operators")
        tensors = tensors_in(args, kwargs) if kwargs else tensors_in(args)
        fake = any(is_fake(item) for item in tensors)
        on_device = is_pretend(kwargs.get("device"))
        if not tensors and (on_device or self._makes_much(func, args, kwargs)):
            with self.session.mode:
                made = func(*args, **kwargs)
            self.known.follow(func, args, kwargs, made)
            return self._observed(func, args, kwargs, made)
        as_called = args
        if on_device and not fake:
            args = tree_map_only(torch.Tensor, self._fake, args)
        elif not fake:
            if not self._stale or not any(self.is_stale(item) for item in tensors):
                return self._real(func, args, kwargs)
            if func.is_view:
                return func(*args, **kwargs)  # what is written into a view must reach its storage
            self._mark_written(func, args, kwargs)
            args, kwargs = tree_map_only(torch.Tensor, self._fake_if_stale, (args, kwargs))
        else:
            self._mark_written(func, args, kwargs)
        if self.functional is not None and "c10d_functional" in func._schema.name:
            tell = self.functional(func, args)
            result = self._observed(func, args, kwargs, func(*args, **kwargs))
            tell(result)
            return result
        given, named = self._without_real(func, args, kwargs, tensors) if fake else (args, kwargs)
        result = self._checked(func, given, named)
        if result is _IS_VALUE:
            known = self.known.result_of(func, args, kwargs)
            return self._value(func, args) if known is None else known
        if result is _SIZE_IS_VALUE:
            return self._of_known_size(func, args, kwargs)
        self._ask_eager(func, args, as_called, kwargs, result)
        result = self._observed(func, args, kwargs, result)
        return result if self.with_choices is None else self.with_choices(func, args, result)

    def _checked(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The result of the fake kernel where eager torch accepts the call too, or what eager makes of
        one that only the fake kernel refuses; a mark where the result or its size is a value."""
        try:
            result = func(*args, **kwargs)
        except DataDependentOutputException:
            return _IS_VALUE
        except DynamicOutputShapeException:
            return _SIZE_IS_VALUE
        except Exception as error:
            return self._like_eager(func, args, kwargs, error)
        count_writes(func, args)
        return result

    def _ask_eager(
        self, func: Any, args: Any, as_called: Any, kwargs: dict[str, Any], result: Any
    ) -> None:
        """Raise what eager torch raises for this call; after the backward pass if one is under way, for
        torch cannot be left in the middle of it."""
        try:
            self._verdicts.check(func, args, kwargs, result)
            self.known.follow(func, as_called, kwargs, result)
        except Exception as error:
            if current_node() is None:
                raise
            self.session.hold_back(error)

    def _like_eager(self, func: Any, args: Any, kwargs: Any, error: Exception) -> Any:
        """What eager torch gives for a call that a fake kernel cannot answer, without its values."""
        made = self._verdicts.accepted_result(func, args, kwargs)
        if made is None:
            raise error
        device = tensors_in(args, kwargs)[0].device
        fake = partial(fake_input, self.session.mode, device=device)
        return tree_map_only(torch.Tensor, fake, made)

    def _without_real(
        self, func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor]
    ) -> tuple[Any, Any]:
        """Real inputs beside fake ones as fakes too: the fake mode would convert each with all that could
        be known of it, and would not use what it keeps of earlier calls."""
        gives_back = func._schema.is_mutable and func._schema.returns  # what it was given, written
        if gives_back or all(is_fake(item) for item in tensors):
            return args, kwargs
        made = _replaced((args, tuple(kwargs.values())), partial(fake_input, self.session.mode))
        return made[0], dict(zip(kwargs, made[1], strict=True))

    def _real(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if func is aten.empty.memory_format and self.blank is not None:
            self.blank.add(StorageWeakRef(result.untyped_storage()))
        return result

    def is_blank(self, tensor: torch.Tensor) -> bool:
        """Nothing has been written into it yet."""
        ref = StorageWeakRef(tensor.untyped_storage())
        return self.blank is not None and ref in self.blank and not tensor._version

    def _observed(self, func: Any, args: Any, kwargs: Any, result: Any) -> Any:
        for observe in self.observers:
            observe(func, args, kwargs, result)
        return result

    def mark_stale(self, tensor: torch.Tensor) -> None:
        """From now on the values of this real tensor are unknown."""
        self._stale.add(StorageWeakRef(tensor.untyped_storage()))

    def mark_known(self, tensor: torch.Tensor) -> None:
        """The whole of this real tensor has been written with known values."""
        self._stale.discard(StorageWeakRef(tensor.untyped_storage()))

    def _makes_much(self, func: Any, args: Any, kwargs: Any) -> bool:
        if "size" not in (
            first := func._schema.arguments[0].name if func._schema.arguments else ""
        ):
            return first in ("end", "start") and isinstance(args[0], int) and args[-1] > LARGE
        size = args[0] if args else kwargs.get("size", ())
        return isinstance(size, (list, tuple)) and math.prod(map(int, size)) > LARGE

    def is_stale(self, tensor: torch.Tensor) -> bool:
        return (
            not is_fake(tensor)
            and tensor.layout is torch.strided
            and StorageWeakRef(tensor.untyped_storage()) in self._stale
        )

    def _fake(self, tensor: torch.Tensor) -> torch.Tensor:
        return make_fake(self.session.mode, tensor)

    def _fake_if_stale(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self.is_stale(tensor):
            return tensor
        made = make_fake(self.session.mode, tensor)
        self.session.report(TensorFaked(tensor, made))
        return made

    def _mark_written(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """A fake value goes into a real tensor: its shape stays right, its value does not."""
        for target in written_tensors(func, args, kwargs):
            if not is_fake(target) and target.layout is torch.strided:
                self.mark_stale(target)

    def _value(self, func: Any, args: Any) -> Any:
        session = self.session
        if func in _EQUAL:
            session.assume("torch.equal", "True")
            return True
        tensor = args[0]
        if tensor.dtype == torch.bool and (said := asserted_value(PROGRAM.here())) is not None:
            session.assume("bool(tensor)", Text(f"{said}, as asserted", f"{said}（按断言）"))
            return said
        if session.asks.answer_scalar is not None:
            return session.asks.answer_scalar(tensor, str(func))
        if tensor.dtype == torch.bool and session.asks.choose is not None:
            return session.asks.choose("bool(tensor)", is_all(tensor))
        value = scalar_for(tensor.dtype)
        session.assume(".item()", repr(value))
        return value

    def _of_known_size(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What `nonzero` and its like give where the values are known; else a guess."""
        self._verdicts.check(func, args, kwargs, None)
        known = self.known.result_of(func, args, kwargs)
        if known is None or func is _PACK:  # sizes of packed batches stay on the CPU
            return self._some_elements(func, args, kwargs)
        device = tensors_in(args, kwargs)[0].device

        def make(value: torch.Tensor) -> torch.Tensor:
            made = fake_input(self.session.mode, value, device)
            self.known.keep(made, value)
            return made

        return tree_map_only(torch.Tensor, make, known)

    def _some_elements(self, func: Any, args: Any, kwargs: Any) -> Any:
        """`nonzero` and its like: half of the elements, at least one."""
        source = args[0]
        count = max(1, source.numel() // 2)
        name = func._schema.name.removeprefix("aten::")
        if func is _PACK:
            return self._packed(source, args[1], args[2])
        total = source.numel()
        if not (known := self._known_masks(name, args)):
            self.session.assume(
                name, Text(f"{count} of {total} elements", f"{total} 个元素中的 {count} 个")
            )
        with self.session.mode:
            made = _dynamic_result(name, func, args, kwargs, source, count, known)
        if made is None:
            return self._like_eager(func, args, kwargs, DynamicOutputShapeException(func))
        weights = args[1] if len(args) > 1 else kwargs.get("weights")
        if name == "bincount" and weights is None:  # with weights they are no counts
            self.session.totals[StorageWeakRef(made.untyped_storage())] = source.numel()
        return made

    def _known_masks(self, name: str, args: Any) -> list[int]:
        """How many elements masks choose, where the values of all masks are known: what is chosen is not
        known, how much of it is."""
        if name not in ("index", "masked_select"):
            return []
        asked = _masks(args[1] if name == "index" else args[1:2])
        masks = [value for mask in asked if (value := self.known.value_of(mask)) is not None]
        if len(masks) < len(asked):
            return []
        if name == "masked_select" and masks:
            whole = torch.broadcast_shapes(args[0].shape, masks[0].shape)
            masks = [masks[0].broadcast_to(whole)]
        return [int(torch.count_nonzero(mask)) for mask in masks]

    def _packed(
        self, source: torch.Tensor, lengths: torch.Tensor, batch_first: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A packed sequence: real lengths are known, fake ones are taken as full."""
        time = source.shape[1 if batch_first else 0]
        if is_fake(lengths):
            self.session.assume(
                "pack_padded_sequence",
                Text(f"all sequences have length {time}", f"所有序列的长度都是 {time}"),
            )
            known = [time] * lengths.shape[0]
        else:
            known = [int(length) for length in lengths.tolist()]
        sizes = torch.tensor([sum(n > step for n in known) for step in range(max(known))])
        with self.session.mode:
            return source.new_empty((sum(known), *source.shape[2:])), sizes


def _with_plain_cpu(kwargs: dict[str, Any]) -> dict[str, Any]:
    """`cpu:0` as `cpu`: a real tensor never shows the number, and a fake one keeps what it is given."""
    device = kwargs.get("device")
    if isinstance(device, torch.device) and device.type == "cpu" and device.index is not None:
        return {**kwargs, "device": torch.device("cpu")}
    return kwargs


def _replaced(value: Any, make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Arguments with other tensors in the place of real ones."""
    if isinstance(value, torch.Tensor):
        return value if is_fake(value) else make(value)
    if isinstance(value, (tuple, list)):
        return type(value)([_replaced(item, make) for item in value])
    return value


def is_all(tensor: torch.Tensor) -> bool:
    """Does it ask whether something holds for all elements? Checks of values (`isfinite(x).all()`) are
    written to pass; `any` is asked for what should not be there."""
    step = step_of(tensor)
    return step is not None and step.op in _ALL


def scalar_for(dtype: torch.dtype) -> bool | int | float | complex:
    """1 in the tensor's own kind of number; False for a flag."""
    if dtype == torch.bool:
        return False
    if dtype.is_complex:
        return complex(1.0)
    return 1.0 if dtype.is_floating_point else 1


def _dynamic_result(
    name: str, func: Any, args: Any, kwargs: Any, source: torch.Tensor, count: int, known: list[int]
) -> Any:
    """`known` are the counts of masks whose values are known."""
    device = source.device

    def ints(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int64, device=device)

    if name == "nonzero":
        return ints(count, source.dim())
    if name == "_ctc_loss":
        steps, batch, longest = source.shape[0], source.shape[1], max(args[3], default=0)
        return source.new_empty((batch,)), source.new_empty((batch, steps, 2 * longest + 1))
    if name == "masked_select":
        return torch.empty((known[0] if known else count,), dtype=source.dtype, device=device)
    if name == "repeat_interleave":
        return ints(count)
    if name == "bincount":  # who names a length has no larger values
        return ints(kwargs.get("minlength", 0) or (args[2] if len(args) > 2 else 0) or count)
    if name in (
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "_unique",
        "unique_dim_consecutive",
    ):
        return _unique(name, args, source, count, ints)
    if name == "index":  # a boolean mask
        return _masked_index(args, ints, known)
    return None


def _unique(name: str, args: Any, source: torch.Tensor, count: int, ints: Any) -> Any:
    if name.startswith("unique_dim"):
        axis = args[1]
        count = max(1, source.shape[axis] // 2)
        shape = [*source.shape]
        shape[axis] = count
        return source.new_empty(shape), ints(source.shape[axis]), ints(count)
    values = source.new_empty((count,))
    inverse = ints(*source.shape)
    return (values, inverse) if name == "_unique" else (values, inverse, ints(count))


def _masks(indices: Any) -> list[torch.Tensor]:
    return [
        item for item in indices if item is not None and item.dtype in (torch.bool, torch.uint8)
    ]


def _masked_index(args: Any, ints: Any, known: list[int]) -> torch.Tensor:
    source, indices = args[0], list(args[1])
    counts = iter(known)
    plain: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            kept = next(counts, max(1, index.numel() // 2))
            plain += [ints(kept) for _ in range(index.dim())]
        else:
            plain.append(index)
    made: torch.Tensor = aten.index.Tensor(source, plain)
    return made
