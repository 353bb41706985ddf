"""The form of a value by its name, where its use does not say more than how many sides it has."""

from __future__ import annotations

import dis
import re
from types import CodeType

from torchstone.starting.cuts.forms import Form

_SIDE = 32
_LENGTH = 16
_CLASSES = 10
_TOKENS = 64
_IMAGE = (3, _SIDE, _SIDE)
_WHOLE = re.compile(
    r"^y$|label|target|class|categor|^gt$|ground_?truth|(^|_)(cls|ids?|idx|index|indices|action)s?$",
    re.I,
)
_WORDS = re.compile(
    r"token|ids$|input_id|^src|^tgt|^trg|word|seq|text|sentence|caption|question", re.I
)
_IMAGES = re.compile(r"im(g|age)|photo|picture|frame|^(lr|hr|rgb|view|pixel|sample)", re.I)
_SQUARE = re.compile(r"^adj|adjacency|laplacian|graph", re.I)
_LENGTHS = re.compile(r"len(gth)?s?$", re.I)
_MASKS = re.compile(r"mask", re.I)


def form_by_name(name: str, rows: int, sides: int = 0, least: int = 0) -> Form:
    """`rows` for a value that holds all samples, else 0; `sides` that it has in all, if that is known;
    `least` where it has that many or more."""
    form = _of_sample(name)
    shape = (rows, *form.shape) if rows else form.shape
    if _SQUARE.search(name) and rows:
        shape = (rows, rows)
    if least == len(_IMAGE) - (0 if rows else 1) and not _WORDS.search(name):
        least = (
            len(_IMAGE) if not rows else len(_IMAGE) + 1
        )  # a width is asked for more often than a depth
    known = sides or max(least, 0)
    if (sides and len(shape) != sides) or len(shape) < known:
        shape = _with_sides(known, rows)
    return Form(form.what, form.dtype, shape, rows if _is_index(name, rows) else form.high)


def _is_index(name: str, rows: int) -> bool:
    return bool(rows and re.search(r"(^|_)(idx|index|indices)", name, re.I))


def _of_sample(name: str) -> Form:
    if _LENGTHS.search(name):
        return Form(dtype="int64", shape=(), high=_LENGTH)
    if _MASKS.search(name):
        return Form(dtype="float32", shape=(1, _SIDE, _SIDE))
    if _WORDS.search(name):
        return Form(dtype="int64", shape=(_LENGTH,), high=_TOKENS)
    if _WHOLE.search(name):
        return Form(dtype="int64", shape=(), high=_CLASSES)
    if _IMAGES.search(name):
        return Form(shape=_IMAGE)
    return Form(shape=(_SIDE,))


def _with_sides(sides: int, rows: int) -> tuple[int, ...]:
    rest = {0: (), 1: (_SIDE,), 2: (_LENGTH, _SIDE), 3: _IMAGE, 4: (3, 8, _SIDE, _SIDE)}
    inner = sides - 1 if rows else sides
    made = rest.get(inner, (2,) * max(inner, 0))
    return (rows, *made) if rows else made


def asked_sides(code: CodeType, last: int) -> tuple[int, int]:
    """How many sides the code that asked for a shape expects: exactly, or at least; 0 where it does not say.
    `b, c, h, w = x.shape` says four, `x.shape[1]` two or more."""
    after = [item for item in dis.get_instructions(code) if item.offset > last][:6]
    for place, item in enumerate(after):
        if item.opname == "UNPACK_SEQUENCE":
            return int(item.arg or 0), 0
        if item.opname == "BINARY_SUBSCR" and place and isinstance(after[place - 1].argval, int):
            number = after[place - 1].argval
            return 0, number + 1 if number >= 0 else -number
        if item.opname.startswith(("STORE", "RETURN", "POP")):
            break
    return 0, 0


def unpacked_into(code: CodeType, last: int) -> int:
    """The number of names that an iteration fills: `a, b = value`; 0 where it is another."""
    now = next((item for item in dis.get_instructions(code) if item.offset == last), None)
    return int(now.arg or 0) if now is not None and now.opname == "UNPACK_SEQUENCE" else 0
