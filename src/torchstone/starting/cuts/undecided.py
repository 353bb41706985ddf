"""A value whose form is open until the program uses it in a way that needs one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.starting.cuts.defaults import asked_sides, form_by_name, unpacked_into
from torchstone.starting.cuts.forms import Form
from torchstone.starting.cuts.trials import base_form, takes_number, value_for_call
from torchstone.starting.models.guesses import value_for
from torchstone.starting.obstacles import Decided

SAME = frozenset(
    "to cuda cpu float double half bfloat16 long int bool type type_as detach clone contiguous requires_grad_ "
    "pin_memory clamp clamp_ sqrt log exp abs sigmoid tanh relu numpy copy astype share_memory_ data "
    "add sub mul div true_divide neg round floor normalize".split()
)
"""Give a value with the same sides: in the run that decides, values do not matter."""
MOVES = frozenset(
    "squeeze unsqueeze view reshape permute transpose t flatten swapaxes movedim T mT".split()
)
"""Give the same numbers with other sides."""


class UndecidedError(BaseException):
    """The program needs to know: the run ends here, and begins again with what was decided."""

    def __init__(self, *decided: Decided) -> None:
        super().__init__("the form of a made value was decided")
        self.decided = decided


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value stands in what was cut out."""

    path: str
    scope: str
    place: tuple[str, ...]
    name: str
    rows: int = 0
    """Of a value that holds all samples."""


class Undecided:
    """Passes through what keeps it open; anything else decides."""

    is_open = True

    def __init__(self, origin: Origin, moves: tuple[Any, ...] = (), batch: int = 0) -> None:
        self.__dict__.update(_origin=origin, _moves=moves, _batch=batch)

    def __reduce__(self) -> Any:
        return Undecided, (self._origin, self._moves, self._batch)

    # -- what keeps it open ---------------------------------------------------------------------

    def batched(self, count: int) -> Undecided:
        return Undecided(self._origin, self._moves, count)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("T", "mT", "data"):
            moved: tuple[Any, ...] = () if name == "data" else ((name, (), {}),)
            return Undecided(self._origin, (*self._moves, *moved), self._batch)
        if name in SAME:
            return lambda *_, **__: self
        if name in MOVES:
            return lambda *args, **kwargs: Undecided(
                self._origin, (*self._moves, (name, args, kwargs)), self._batch
            )
        if name in ("shape", "size"):
            frame = sys._getframe(1)
            self._decide_by_name(*asked_sides(frame.f_code, frame.f_lasti))
        if hasattr(torch.Tensor, name):
            self._decide_by_name()
        if hasattr(str, name):
            self.decide(Form("text", value="one two three"))
        if self._moves or hasattr(dict, name) or hasattr(list, name):
            raise AttributeError(name)
        return self._split(f".{name}")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("stack", "cat", "concat") and (rows := _all_open(args[0] if args else ())):
            return rows[0].batched(len(rows)) if name == "stack" else rows[0]
        first = args[0] if args else None
        if isinstance(first, Undecided) and name in SAME and not _tensors(args[1:]):
            return first
        if isinstance(first, Undecided) and name in MOVES:
            return getattr(first, name)(*args[1:], **kwargs)
        one = next(_open_ones((*args, *kwargs.values())))
        found = value_for_call(func, args, kwargs, one)
        if found is not None and (form := base_form(found, one._moves, one._batch)) is not None:
            one.decide(form)
        return one._number() if takes_number(func, args, kwargs, one) else one._decide_by_name()

    def _with(self, name: str, other: Any, swapped: bool = False) -> Any:
        if isinstance(other, (int, float)):
            return self
        pair = (other, self) if swapped else (self, other)
        if isinstance(other, torch.Tensor):
            return Undecided.__torch_function__(getattr(torch, name), (), pair)
        return self if isinstance(other, Undecided) else self._decide_by_name()

    # -- what decides ---------------------------------------------------------------------------

    def decide(self, form: Form) -> Any:
        it = self._origin
        raise UndecidedError(Decided(it.path, it.scope, it.place, it.name, form))

    def _decide_by_name(self, sides: int = 0, least: int = 0) -> Any:
        it, inside = self._origin, 1 if self._batch else 0
        extra = sum(1 for name, _, _ in self._moves if name == "unsqueeze")
        taken = inside + extra
        form = form_by_name(it.name, it.rows, max(sides - taken, 0), max(least - taken, 0))
        if not it.rows and sides and sides == taken:
            form = Form(form.what, form.dtype, (), form.high)
        return self.decide(form)

    def _split(self, *steps: str) -> Any:
        it = self._origin
        raise UndecidedError(Decided(it.path, it.scope, it.place, it.name, None, steps))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            self._split(f"{{{key}")
        whole = self._origin.place[-1:] in ((), ("@",))
        if isinstance(key, int) and not self._moves and whole:
            self._split(*(f"({count}" for count in range(max(key + 1, 2))))
        if _keeps_open(key):
            return Undecided(self._origin, (*self._moves, ("__getitem__", (key,), {})), self._batch)
        sides = (
            sum(item is not None and item is not Ellipsis for item in key)
            if isinstance(key, tuple)
            else 1
        )
        return self._decide_by_name(0, sides)

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        count = unpacked_into(frame.f_code, frame.f_lasti)
        if count and not self._moves:
            self._split(*(f"({place}" for place in range(count)))
        return self._decide_by_name(0, 1)

    def __len__(self) -> int:
        return int(self._decide_by_name(0, 1))

    def _number(self) -> Any:
        text = value_for(self._origin.name)
        return self.decide(Form("number", value=text if text.replace(".", "").isdigit() else "1"))

    def __array__(self, *_: Any, **__: Any) -> Any:
        it = self._origin
        form = form_by_name(it.name, it.rows)
        return self.decide(Form("array", form.dtype, form.shape, form.high))

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return id(self)

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        return int(self._number())

    def __contains__(self, key: Any) -> bool:
        return isinstance(key, str) and bool(self[key])

    def keys(self) -> Any:
        """Of a dictionary whose keys the code did not show."""
        raise AttributeError("keys")


def _keeps_open(key: Any) -> bool:
    """A part of the samples or of their sides, of any form."""
    steps = key if isinstance(key, tuple) else (key,)
    return any(isinstance(step, slice) for step in steps) and all(
        step is None or step is Ellipsis or isinstance(step, (slice, int)) for step in steps
    )


def _add_operators() -> None:
    """`+` and the like, from both sides."""
    for sign, name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "true_divide"), ("eq", "eq"),
                       ("ne", "ne"), ("lt", "lt"), ("gt", "gt"), ("le", "le"), ("ge", "ge"), ("matmul", "matmul"),
                       ("pow", "pow"), ("floordiv", "floor_divide"), ("mod", "remainder")):  # fmt: skip
        setattr(Undecided, f"__{sign}__", lambda self, other, name=name: self._with(name, other))
        setattr(
            Undecided, f"__r{sign}__", lambda self, other, name=name: self._with(name, other, True)
        )
    for sign in ("neg", "abs", "invert", "pos"):
        setattr(Undecided, f"__{sign}__", lambda self: self)


_add_operators()


def _open_ones(values: Any) -> Any:
    for value in values:
        if isinstance(value, Undecided):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _open_ones(value)
        elif isinstance(value, dict):
            yield from _open_ones(tuple(value.values()))


def _all_open(values: Any) -> list[Undecided]:
    rows = list(values) if isinstance(values, (list, tuple)) else []
    return rows if rows and all(isinstance(item, Undecided) for item in rows) else []


def _tensors(values: Any) -> list[torch.Tensor]:
    return [item for item in values if isinstance(item, torch.Tensor)]


def open_values(values: Any) -> list[Undecided]:
    """All that are undecided among arguments."""
    return list(_open_ones(values))
