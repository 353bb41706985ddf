"""Libraries that read files without Python's `open`: they are told where the made files lie, and get made
values for formats that only they can write."""

from __future__ import annotations

import errno
import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from torchstone.starting.replacements.checkpoints import replace_checkpoints
from torchstone.starting.replacements.groups import MadeGroup
from torchstone.starting.replacements.imports import when_imported

_NATIVE = {
    "cv2": ("imread",),
    "soundfile": ("read", "SoundFile", "info"),
    "torchaudio": ("load", "info"),
    "torchvision.io": ("read_image", "decode_image"),
}
"""Functions that take a path first, by module."""


def replace_loaders(made: Mapping[str, str], map_path: Callable[[Any], Any]) -> None:
    """From now on these read the made files, and raise where there is no file."""
    for module, names in _NATIVE.items():
        when_imported(module, functools.partial(_map_first, module, names, map_path))
    groups = {path for path, form in made.items() if form == "groups"}
    if groups:
        when_imported("h5py", functools.partial(_open_groups, groups))
        when_imported("scipy.io", functools.partial(_load_groups, groups))
    checkpoints = {path for path, form in made.items() if form == "checkpoint"}
    if checkpoints:
        replace_checkpoints(checkpoints)


def _map_first(module: str, names: tuple[str, ...], map_path: Callable[[Any], Any]) -> None:
    holder = sys.modules[module]
    for name in names:
        real = getattr(holder, name, None)
        if callable(real) and not isinstance(real, type):
            setattr(holder, name, _mapped(real, map_path))


def _mapped(real: Callable[..., Any], map_path: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def read(path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, (str, os.PathLike)):
            if not os.path.exists(path):  # some give None instead, and the program fails far away
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
            path = os.fspath(map_path(path))
        return real(path, *args, **kwargs)

    return read


def _open_groups(paths: set[str]) -> None:
    library: Any = importlib.import_module("h5py")
    real = library.File

    def file(name: Any, *args: Any, **kwargs: Any) -> Any:
        return (
            MadeGroup()
            if os.path.abspath(os.fspath(name)) in paths
            else real(name, *args, **kwargs)
        )

    library.File = file


def _load_groups(paths: set[str]) -> None:
    library: Any = importlib.import_module("scipy.io")
    real = library.loadmat

    def load(name: Any, *args: Any, **kwargs: Any) -> Any:
        return (
            MadeGroup()
            if os.path.abspath(os.fspath(name)) in paths
            else real(name, *args, **kwargs)
        )

    library.loadmat = load
