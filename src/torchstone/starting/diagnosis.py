"""Which obstacle an exception shows, if it shows one."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import os
import platform
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType

from torchstone.observe.where import is_of_package
from torchstone.starting.obstacles import (
    EmptyData,
    MissingCommand,
    MissingDataset,
    MissingFile,
    MissingPackage,
    MissingPretrained,
    NoNetwork,
    Obstacle,
    OtherVersion,
)
from torchstone.starting.stand_ins.values import ValueNeededError

_CLIENTS = frozenset(
    "curl wget git gdown aria2c axel gsutil aws rsync scp huggingface-cli hf kaggle pip conda".split()
)
"""Commands whose work is to fetch something."""
_NO_SAMPLES = re.compile(
    r"num_samples=0|Couldn't find any class folder|Found no valid file|Found 0 (files|images)"
    r"|empty (dataset|data set)|no (images|files|samples|data)( were)? found",
    re.I,
)
_OF_OLDER_PYTHON = re.compile(r"mutable default .* use default_factory|bad escape \\\\\w")
"""What older versions of Python accept."""
_OF_FETCHING = (OSError, ValueError, RuntimeError)
"""What libraries raise where files cannot be fetched; other errors inside of them are their callers'."""
_SHORTEST = 5
"""Letters of a path that is looked for in a text: shorter ones stand in any sentence."""
_CANNOT_IMPORT = re.compile(r"cannot import name '([^']+)' from '([^']+)'")


def find_obstacle(error: BaseException, unfound: tuple[str, ...] = ()) -> Obstacle | None:
    """The obstacle behind an exception, looked for in the whole chain; None where it is the program's
    own. `unfound` are paths that the program looked for, the latest last."""
    for one in chain_of(error):
        found = _of_frames(one) if isinstance(one, _OF_FETCHING) else None
        found = found or _of_one(one, unfound)
        if found is not None:
            return found
    return None


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it came from."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__ or current.__context__


def _of_one(error: BaseException, unfound: tuple[str, ...]) -> Obstacle | None:
    if isinstance(error, ValueNeededError):
        return MissingPackage(error.package)
    if isinstance(error, ImportError):
        return _of_import(error)
    if isinstance(error, AttributeError):
        return _of_attribute(error)
    if isinstance(error, subprocess.CalledProcessError):
        command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
        return NoNetwork(command[:120]) if _fetches(command) else None
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        path = _path_of(error, unfound)
        if _is_inside(error, subprocess.__file__):
            return MissingCommand(path)
        return MissingFile(path, error.errno == errno.ENOENT and _lists_folders(error))
    if isinstance(error, ValueError) and _OF_OLDER_PYTHON.search(_text(error)):
        return OtherVersion("python", _text(error).partition(":")[0], platform.python_version())
    if _NO_SAMPLES.search(_text(error)) or _named(error, unfound):
        named = _named(error, unfound)
        rest = tuple(path for path in reversed(unfound) if path not in named)
        return EmptyData((*named, *rest)[:8])
    return None


def _path_of(error: OSError, unfound: tuple[str, ...]) -> str:
    """The path that an error is about: libraries of C put it into the text only."""
    if isinstance(error.filename, (str, bytes)):
        return os.fsdecode(error.filename)
    quoted = re.search(r"'([^']+\.\w+)'|(\S+\.\w+) not found", _text(error))
    if quoted:
        return str(quoted[1] or quoted[2])
    return unfound[-1] if unfound else ""


def _named(error: BaseException, unfound: tuple[str, ...]) -> tuple[str, ...]:
    """Paths that the program looked for in vain and now complains about, in words of its own."""
    text = _text(error)
    names = {path: os.path.relpath(path) for path in reversed(unfound)}
    return tuple(
        path
        for path, name in names.items()
        if len(name) >= _SHORTEST and (path in text or name in text)
    )


def _of_frames(error: BaseException) -> Obstacle | None:
    """A dataset or weights that a library was about to fetch, by the frames that the error went through."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        path, scope = frame.f_code.co_filename, frame.f_code.co_name
        if "/torchvision/datasets/" in path and "self" in frame.f_locals:
            return MissingDataset(type(frame.f_locals["self"]).__name__)
        if "/transformers/" in path and scope == "from_pretrained":
            name = frame.f_locals.get("pretrained_model_name_or_path")
            if isinstance(name, (str, os.PathLike)):
                return MissingPretrained(os.fspath(name))
    return None


def _of_import(error: ImportError) -> Obstacle | None:
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        if top != error.name and is_installed(top):
            home, _, part = error.name.rpartition(".")
            return OtherVersion(home, part, version_of(top))
        return MissingPackage(top)
    match = _CANNOT_IMPORT.search(_text(error))
    return _of_name(match[2], match[1]) if match else None


def _of_name(module: str, name: str) -> Obstacle | None:
    """A name that a module of Python itself, or of an installed package, does not have."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return OtherVersion(module, name, f"(Python {platform.python_version()})")
    return OtherVersion(module, name, version_of(top)) if is_installed(top) else None


def _of_attribute(error: AttributeError) -> Obstacle | None:
    """A name that a module of an installed package does not have (any more). torch itself is what is
    checked: a name that it lacks is the program's."""
    home = error.obj if isinstance(error.obj, ModuleType) else None
    name = home.__name__ if home is not None else ""
    match = re.match(r"module '([^']+)' has no attribute '([^']+)'", _text(error))
    name, asked = (match[1], match[2]) if match else (name, error.name or "")
    if not match and not name:
        name, asked = _asked_of_module(error)
    if not name or not asked or name.partition(".")[0] == "torch":
        return None
    return _of_name(name, asked)


def _asked_of_module(error: AttributeError) -> tuple[str, str]:
    """Module and name where a module's own `__getattr__` refuses, in words of its own."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    last = frames[-1] if frames else None
    if last is None or last.f_code.co_qualname != "__getattr__":
        return "", ""
    given = last.f_code.co_varnames[:1]
    asked = last.f_locals.get(given[0], "") if given else ""
    return str(last.f_globals.get("__name__", "")), str(asked)


def is_installed(top: str) -> bool:
    """Whether a name is a package of this environment, not of the project or the standard library."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    return any(map(is_of_package, places))


def version_of(top: str) -> str:
    """The installed version of the package that a name is imported from."""
    for name in (top, *importlib.metadata.packages_distributions().get(top, ())):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return str(getattr(sys.modules.get(top), "__version__", ""))


def _fetches(command: str) -> bool:
    """Whether any part of a command line is a client of the network."""
    return any(os.path.basename(word) in _CLIENTS for word in re.split(r"[\s;&|]+", command))


def _is_inside(error: BaseException, file: str) -> bool:
    return any(
        frame.f_code.co_filename == file for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _lists_folders(error: BaseException) -> bool:
    """Whether the path was to be listed, not read."""
    names = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(name in ("listdir", "scandir", "names", "iterdir", "walk") for name in names[-3:])


def _text(error: BaseException) -> str:
    try:
        return str(error)[:600]
    except Exception:  # an exception of the program may fail even to say what it is
        return ""
