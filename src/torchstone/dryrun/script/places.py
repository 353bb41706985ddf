"""Which line of the user's code is running now."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType

import torch

from torchstone.dryrun.record import Place

_OURS = str(Path(__file__).parents[2])
_TORCH = str(Path(torch.__file__).parent)
_INSTALLED = tuple(
    {
        path
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
        if (path := sysconfig.get_path(name))
    }
)

_PACKAGES = ("/site-packages/", "/dist-packages/")
"""Folders of installed packages wherever they are: the user's own, and those on PYTHONPATH."""

HIDDEN, LIBRARY, OWN = 0, 1, 2
_kinds: dict[CodeType, int] = {}

Spot = tuple[CodeType, int]
"""A line as cheap as can be kept for every operator: its code object and its number."""


def kind_of(code: CodeType) -> int:
    """OWN for the user's files, LIBRARY for installed packages, HIDDEN for torch and ourselves."""
    kind = _kinds.get(code)
    if kind is None:
        name = code.co_filename
        if name.startswith((_OURS, _TORCH, "<")):
            kind = HIDDEN
        elif name.startswith(_INSTALLED) or any(part in name for part in _PACKAGES):
            kind = LIBRARY
        else:
            kind = OWN
        _kinds[code] = kind
    return kind


def own_spot(depth: int = 1) -> Spot | None:
    """The innermost line of the user's own code, or of a library when there is none."""
    return own_spot_from(sys._getframe(depth))


def own_spot_from(frame: FrameType | None) -> Spot | None:
    """The same, from a frame outwards."""
    library: Spot | None = None
    while frame is not None:
        code = frame.f_code
        kind = _kinds.get(code)
        if kind is None:
            kind = kind_of(code)
        if kind == OWN:
            return (code, frame.f_lineno)
        if kind == LIBRARY and library is None:
            library = (code, frame.f_lineno)
        frame = frame.f_back
    return library


def library_spot(depth: int = 1) -> Spot | None:
    """The innermost line outside torch, when a library stands between the user and torch."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        kind = kind_of(frame.f_code)
        if kind == OWN:
            return None
        if kind == LIBRARY:
            return (frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return None


_CALLED_FOR_THE_USER = ("/torch/_tensor.py", "/torch/overrides.py", "/torch/functional.py")
"""torch's Python code that only hands on what the user asks."""


def is_asked_by_torch(depth: int = 1) -> bool:
    """Whether torch's own Python code asks, as its checks of arguments do, and not the user's."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if kind_of(frame.f_code) != HIDDEN:
            return False
        if name.startswith(_TORCH) and not name.endswith(_CALLED_FOR_THE_USER):
            return "/torch/utils/_" not in name
        frame = frame.f_back
    return False


def is_ours(code: CodeType) -> bool:
    """Whether it is code of this package."""
    return code.co_filename.startswith(_OURS)


def place_of(spot: Spot | None) -> Place:
    """The spot as data, with its path relative to the working folder where it can be."""
    if spot is None:
        return Place()
    code, line = spot
    scope = code.co_qualname if code.co_name != "<module>" else ""
    return Place(short_path(code.co_filename), line, scope)


def short_path(path: str) -> str:
    """Relative to the working folder, or to site-packages for a library."""
    for base in (str(Path.cwd()), *_INSTALLED):
        if path.startswith(base + "/"):
            return path[len(base) + 1 :]
    return path
