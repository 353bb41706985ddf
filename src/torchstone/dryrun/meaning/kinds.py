"""What made a value travels with it: logits, probabilities, log-probabilities."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import torch

from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.dryrun.session import Session
from torchstone.dryrun.shapes.history import function_name, operands_of
from torchstone.observe.where import PROGRAM

_KEY = "_dryrun_kind"


class Kind(Enum):
    """What the numbers of a tensor are, along their last use."""

    LOGITS = Text("logits", "logits")
    PROBABILITIES = Text("probabilities", "概率")
    LOG_PROBABILITIES = Text("log-probabilities", "对数概率")


class Meaning(NamedTuple):
    """The kind of a value, and the call that made it so."""

    kind: Kind
    op: str
    spot: Place

    def __reduce__(self) -> tuple[Any, ...]:
        """A tensor that travels to another process leaves it behind, as it does its history."""
        return (_forget, ())


def _forget() -> None:
    """In the place of a meaning that was pickled."""


_MAKERS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "bilinear"), Kind.LOGITS),
    **dict.fromkeys(("softmax", "sigmoid", "gumbel_softmax"), Kind.PROBABILITIES),
    **dict.fromkeys(("log_softmax", "logsigmoid"), Kind.LOG_PROBABILITIES),
}
"""Functions that make numbers of a kind, whatever they are given."""
_CARRIERS = frozenset(
    "view reshape flatten unflatten squeeze unsqueeze transpose permute t mT contiguous clone detach to "
    "float half double bfloat16 cpu cuda expand expand_as repeat __getitem__ select narrow gather "
    "index_select masked_select clamp clip clamp_min clamp_max nan_to_num view_as movedim swapaxes "
    "type type_as chunk split unbind requires_grad_".split()
)
"""Functions whose result has the kind of their first argument."""
_JOINS = frozenset(("cat", "stack", "concat", "hstack", "vstack"))
_FIRST = "input"

_WANTED: dict[str, Kind] = {
    **dict.fromkeys(("cross_entropy", "binary_cross_entropy_with_logits"), Kind.LOGITS),
    **dict.fromkeys(("nll_loss", "kl_div", "ctc_loss"), Kind.LOG_PROBABILITIES),
    "binary_cross_entropy": Kind.PROBABILITIES,
}
"""What each loss takes as its first argument."""
_HARMLESS = frozenset({("cross_entropy", Kind.LOG_PROBABILITIES)})
"""The log-softmax of log-probabilities is what they are."""
_TWICE = frozenset(("softmax", "log_softmax"))


class Kinds:
    """Follows the kinds of values, and looks at what losses are given."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def check(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Of one call that went well."""
        name = func.__name__
        wanted = _WANTED.get(name)
        if wanted is not None:
            self._check_loss(func, name, args, kwargs, wanted)
        elif name in _TWICE:
            self._check_twice(func, args, kwargs)
        meaning = self._meaning_of_result(func, name, args, kwargs)
        if meaning is None:
            return
        for item in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(item, torch.Tensor) and item.is_floating_point():
                item.__dict__[_KEY] = meaning

    def _meaning_of_result(
        self, func: Any, name: str, args: Any, kwargs: dict[str, Any]
    ) -> Meaning | None:
        kind = _MAKERS.get(name)
        if kind is not None:
            return Meaning(kind, function_name(func), PROGRAM.here(4))
        first = args[0] if args else kwargs.get(_FIRST)
        if name in _JOINS and isinstance(first, (tuple, list)):
            return _common([_meaning_of(item) for item in first])
        known = _meaning_of(first)
        if known is None or name in _CARRIERS:
            return known
        if (name == "log" and known.kind is Kind.PROBABILITIES) or (
            name == "exp" and known.kind is Kind.LOG_PROBABILITIES
        ):
            other = Kind.LOG_PROBABILITIES if name == "log" else Kind.PROBABILITIES
            return Meaning(other, function_name(func), PROGRAM.here(4))
        return None

    def _check_loss(
        self, func: Any, name: str, args: Any, kwargs: dict[str, Any], wanted: Kind
    ) -> None:
        known = _meaning_of(args[0] if args else kwargs.get(_FIRST))
        if known is None or known.kind is wanted or (name, known.kind) in _HARMLESS:
            return
        self._tell(func, args, kwargs, known, wanted)

    def _check_twice(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        known = _meaning_of(args[0] if args else kwargs.get(_FIRST))
        if known is not None and known.kind is Kind.PROBABILITIES and "softmax" in known.op:
            self._tell(func, args, kwargs, known, Kind.LOGITS)

    def _tell(
        self, func: Any, args: Any, kwargs: dict[str, Any], known: Meaning, wanted: Kind
    ) -> None:
        given, need = known.kind.value, wanted.value
        self._session.hazard(
            "DR204",
            function_name(func),
            lambda: operands_of(func, args, kwargs),
            Text(
                f"takes {need.en} and is given {given.en}, made by {known.op} at {known.spot}",
                f"需要{need.zh}，得到的却是 {known.spot} 处 {known.op} 产生的{given.zh}",
            ),
        )


def _meaning_of(value: object) -> Meaning | None:
    return value.__dict__.get(_KEY) if isinstance(value, torch.Tensor) else None


def _common(meanings: list[Meaning | None]) -> Meaning | None:
    """That of all parts, where they have the same kind."""
    first = meanings[0] if meanings else None
    same = first is not None and all(
        item is not None and item.kind is first.kind for item in meanings
    )
    return first if same else None
