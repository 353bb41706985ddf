"""What an exception says about made data that do not fit: sizes, columns, fields of lines."""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

from torchstone.core.place import Place
from torchstone.starting.diagnosis import find_obstacle
from torchstone.starting.lookups import Lookups
from torchstone.starting.obstacles import EmptyData, Misfit, Obstacle
from torchstone.starting.supplies import MadeDataset, MadeFile, MadeValues, PlainPackage, Supply

_NUMBER = re.compile(
    r"(?:invalid literal for int\(\) with base \d+|could not convert string to float): '([^']*)'"
)
_UNPACKED = re.compile(
    r"(?:not enough|too many) values to unpack \(expected (?:at least )?(\d+)(?:, got (\d+))?"
)
_LENGTHS = re.compile(r"Sum of input lengths does not equal the length of the input dataset")
_CHANNELS = re.compile(r"to have (\d+) channels, but got (\d+) channels")
_PRODUCT = re.compile(r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
_BROADCAST = re.compile(
    r"could not broadcast input array from shape \([\d,]*?(\d+)\) into shape \([\d,]*?(\d+)\)"
)
_INDICES = re.compile(r"scalar types: Long, Int|used as indices must be|expected scalar type Long")
_RANGE = re.compile(
    r"index out of range in self|Target \d+ is out of bounds|index \d+ is out of bounds for dimension"
)
_NORMALIZED = re.compile(r"normalized_shape=\[(\d+)\].*?input of size ?\[[\d, ]*?(\d+)\]")


def find_misfit(error: BaseException, message: str = "") -> Misfit | None:
    """None where the exception says nothing of the kind; `message` is torch's own, for a refused call."""
    text = message or str(error)[:600]
    if match := _CHANNELS.search(text):
        return Misfit("size", match[2], match[1])
    if match := _PRODUCT.search(text):
        return Misfit("size", match[2], match[3])
    if match := _BROADCAST.search(text):
        return Misfit("size", match[1], match[2])
    if match := _NORMALIZED.search(text):
        return Misfit("size", match[2], match[1])
    if _INDICES.search(text):
        return Misfit("indices")
    if _RANGE.search(text):
        return Misfit("range")
    if _LENGTHS.search(text):
        return Misfit("count")
    if isinstance(error, ValueError) and (match := _NUMBER.search(text)):
        return Misfit("number", match[1])
    if isinstance(error, ValueError) and (match := _UNPACKED.search(text)):
        return Misfit("fields", match[2] or "", match[1])
    if isinstance(error, ValueError) and (name := _not_in_list(error, text)):
        return Misfit("column", "", name)
    if isinstance(error, KeyError) and error.args and _went_through(error, "/pandas/"):
        return Misfit("column", "", _column(error.args[0]))
    if isinstance(error, IndexError) and "list index out of range" in text:
        return Misfit("fields")
    return None


def has_made_data(supplies: Sequence[Supply]) -> bool:
    """Whether part of the data was made: any exception may come from that."""
    return any(
        isinstance(item, MadeFile | MadeValues | MadeDataset | PlainPackage) for item in supplies
    )


def find_any_obstacle(
    error: BaseException, supplies: Sequence[Supply], lookups: Lookups
) -> Obstacle | None:
    """What an exception shows beside what was supplied."""
    unfound = lookups.paths()
    found = find_obstacle(error, unfound, lookups.looked_for)
    if found is None and has_made_data(supplies):
        found = obstacle_of_made_data(error, "", unfound, lookups.looked_for)
    if isinstance(found, EmptyData):
        return replace(found, places=tuple(map(lookups.looked_for, found.paths)))
    return found


def obstacle_of_made_data(
    error: BaseException,
    message: str = "",
    unfound: tuple[str, ...] = (),
    looked_for: Callable[[str], Place] = lambda _: Place(),
) -> Obstacle:
    """Made data may not fit, or what was looked for beside them, by a file that the exception went through, is
    the next part."""
    frames = [
        Place(frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    ways = {_part_of(place) for place in frames}
    near = [
        path
        for path in reversed(unfound)
        if not (asked := looked_for(path)).path or _part_of(asked) in ways
    ]
    latest = tuple(near)[:8]
    misfit = find_misfit(error, message)
    return misfit if misfit is not None and not latest else EmptyData(latest)


def _part_of(place: Place) -> tuple[str, int]:
    """The outermost function or class that a line is in, by file and first line."""
    try:
        tree = ast.parse("".join(linecache.getlines(place.path)))
    except (SyntaxError, ValueError, RecursionError):
        return place.path, 0
    parts = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    inside = (node.lineno for node in parts if node.lineno <= place.line <= (node.end_lineno or 0))
    return place.path, next(inside, 0)


def _column(given: object) -> str:
    """`'OT'`, or `"['OT'] not in index"`."""
    names = re.findall(r"'([^']+)'", str(given))
    return "\n".join(names) if names and "not in" in str(given) else str(given)


def _not_in_list(error: BaseException, text: str) -> str:
    """The name that a list of columns was asked for: `columns.remove(name)`, `columns.index(name)`."""
    if match := re.fullmatch(r"'(\w+)' is not in list", text):
        return match[1]
    frames = list(traceback.walk_tb(error.__traceback__))
    if not text.startswith("list.remove(x)") or not frames:
        return ""
    frame, line = frames[-1]
    match = re.search(
        r"\.remove\(\s*([\w.]+)\s*\)", linecache.getline(frame.f_code.co_filename, line)
    )
    value: object = None
    for place, part in enumerate(match[1].split(".") if match else ()):
        value = frame.f_locals.get(part) if place == 0 else getattr(value, part, None)
    return value if isinstance(value, str) else ""


def _went_through(error: BaseException, part: str) -> bool:
    return any(
        part in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)
    )
