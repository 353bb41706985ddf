"""Which obstacle an exception shows, if it shows one."""

from __future__ import annotations

import errno
import linecache
import os
import platform
import re
import subprocess
import traceback
from collections.abc import Callable, Iterator

from torchstone.core.place import Place
from torchstone.observe.where import HIDDEN, Where, is_ours
from torchstone.starting.obstacles import (
    BrokenPackage,
    EmptyData,
    MissingCommand,
    MissingDataset,
    MissingFile,
    MissingOperators,
    MissingPackage,
    MissingPretrained,
    MissingResource,
    MissingWeights,
    NoNetwork,
    Obstacle,
    OlderPython,
    OlderTorch,
    OpenValues,
)
from torchstone.starting.replacements.older_torch import older_behaviour
from torchstone.starting.stand_ins.values import ValueNeededError
from torchstone.starting.versions import (
    is_installed,
    last_package,
    obstacle_of_attribute,
    obstacle_of_guarded_import,
    obstacle_of_import,
    obstacle_of_keyword,
    obstacle_of_stated_version,
    package_that_breaks,
)

_CLIENTS = frozenset(
    "curl wget git gdown aria2c axel gsutil aws rsync scp huggingface-cli hf kaggle pip conda".split()
)
"""Commands whose work is to fetch something."""
_NO_SAMPLES = re.compile(
    r"num_samples=0|Couldn't find any class folder|Found no valid file|Found 0 (files|images)"
    r"|empty (dataset|data set)|no (images|files|samples|data)( were)? found",
    re.I,
)
_RAISES = re.compile(r"\s*(raise|assert|sys\.exit|exit|quit)\b|.*:\s*raise\b")
_OF_OLDER_PYTHON = re.compile(r"mutable default .* use default_factory|bad escape \\\\\w")
"""What older versions of Python accept."""
_OF_FETCHING = (OSError, ValueError, RuntimeError, LookupError, EOFError)
"""What libraries raise where files cannot be fetched; other errors inside of them are their callers'."""
_SHORTEST = 5
"""Letters of a path that is looked for in a text: shorter ones stand in any sentence."""
_NO_OPERATOR = re.compile(r"operator (\w+)::\w+ does not exist")
_OF_FOLDERS = ("ImageFolder", "DatasetFolder", "VisionDataset")
_WEIGHTS = ("load_state_dict_from_url", "download_url_to_file")
_BROKEN = re.compile(r"Could not load this library|undefined symbol|cannot open shared object file")
_RESOURCES = ("datasets", "tiktoken", "spacy", "nltk")


def find_obstacle(
    error: BaseException,
    unfound: tuple[str, ...] = (),
    looked_for: Callable[[str], Place] = lambda _: Place(),
) -> Obstacle | None:
    """The obstacle behind an exception, looked for in the whole chain; None where it is the program's
    own. `unfound` are paths that the program looked for, the latest last; `looked_for` says in which line."""
    if decided := getattr(error, "decided", None):
        return OpenValues(decided)
    if refused := find_refused_path(error, unfound, looked_for):
        return MissingFile(refused, not os.path.splitext(refused)[1])
    for one in chain_of(error):
        fetches = isinstance(one, (*_OF_FETCHING, ValueNeededError))
        found = _of_frames(one) if fetches else None
        found = found or _of_one(one, unfound)
        if found is not None:
            return found
    broken = package_that_breaks(error)
    return BrokenPackage(broken) if broken else None


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it came from."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        yield current
        current = current.__cause__ or current.__context__


def find_refused_path(
    error: BaseException, unfound: tuple[str, ...], looked_for: Callable[[str], Place]
) -> str:
    """The path without which the program raises an exception of its own, or ends: the latest that the same
    function looked for before it does so (`assert os.path.exists(path)`)."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames or not unfound:
        return ""
    frame, line = frames[-1]
    code, asked = frame.f_code, looked_for(unfound[-1])
    inside = code.co_firstlineno <= asked.line <= line
    if asked.path != code.co_filename or not inside:
        return ""
    return unfound[-1] if _RAISES.match(linecache.getline(code.co_filename, line)) else ""


def own_lines(error: BaseException, is_own: Callable[[str], bool]) -> tuple[Place, ...]:
    """Lines of the program that an exception went through, the innermost first."""
    lines = [
        Place(frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if is_own(frame.f_code.co_filename)
    ]
    return tuple(reversed(lines))


def _of_one(error: BaseException, unfound: tuple[str, ...]) -> Obstacle | None:
    if isinstance(error, ValueNeededError):
        asking = last_package(
            error
        )  # a library that needs more than a stand-in is stood in for itself
        return BrokenPackage(asking) if asking else MissingPackage(error.package)
    if isinstance(error, (ImportError, OSError)) and _BROKEN.search(_text(error)):
        package = last_package(error)
        return BrokenPackage(package) if package else None
    if isinstance(error, ImportError):
        return obstacle_of_import(error)
    if isinstance(error, TypeError) and (keyword := obstacle_of_keyword(error)):
        return keyword
    if isinstance(error, AttributeError):
        return obstacle_of_attribute(error)
    if isinstance(error, AssertionError) and (stated := obstacle_of_stated_version(error)):
        return stated
    if isinstance(error, NameError):
        return obstacle_of_guarded_import(error)
    if isinstance(error, RuntimeError) and (match := _NO_OPERATOR.search(_text(error))):
        return MissingOperators(match[1]) if is_installed(match[1]) else None
    if isinstance(error, subprocess.CalledProcessError):
        command = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
        return NoNetwork(command[:120]) if _fetches(command) else None
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        path = _path_of(error, unfound)
        if _is_inside(error, subprocess.__file__):
            return MissingCommand(path)
        return MissingFile(path, error.errno == errno.ENOENT and _lists_folders(error))
    if older := older_behaviour(error):
        return OlderTorch(older)
    if isinstance(error, ValueError) and _OF_OLDER_PYTHON.search(_text(error)):
        return OlderPython(_text(error).partition(":")[0], platform.python_version())
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
        if "/torchvision/datasets/" in path and (name := _dataset_of(frame.f_locals.get("self"))):
            return MissingDataset(name)
        if scope in _WEIGHTS and "/torch/" in path:
            return MissingWeights(str(frame.f_locals.get("url", "")))
        if scope in ("list", "help", "load") and path.endswith("/torch/hub.py"):
            return MissingWeights(
                str(frame.f_locals.get("github") or frame.f_locals.get("repo_or_dir"))
            )
        if "/transformers/" in path and scope == "from_pretrained":
            given = frame.f_locals.get("pretrained_model_name_or_path")
            if isinstance(given, (str, os.PathLike)):
                return MissingPretrained(os.fspath(given))
        package = path.rpartition("-packages/")[2].partition("/")[0]
        if package in _RESOURCES and is_installed(package):
            return MissingResource(package, str(frame.f_locals.get("path", "")))
    return None


def _dataset_of(value: object) -> str:
    """The class of torchvision that a dataset is, or inherits from; folders of images are files."""
    for kind in type(value).__mro__:
        if kind.__module__.startswith("torchvision.datasets."):
            return "" if kind.__name__ in _OF_FOLDERS else kind.__name__
    return ""


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


_SLIPS = (AttributeError, NameError, LookupError, AssertionError, TypeError, RecursionError)
"""What a fault in our own code raises. Errors of the system and values that torch refuses only pass
through it, on behalf of the program."""


def is_fault_of_ours(error: BaseException, program: Where) -> bool:
    """Whether what surrounds the program failed: no line of it was running, or the innermost line is ours and
    the error is one of ours."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not files or isinstance(error, SyntaxError):
        return False
    if all(program.kind_of(file) == HIDDEN for file in files):
        return True
    hands_on = "/walls/" in files[-1]  # files and sockets: the system's own errors
    return is_ours(files[-1]) and isinstance(error, _SLIPS) and not hands_on


def own_place_of(error: BaseException) -> str:
    """The innermost line of ours, for whoever has to correct it."""
    places = [
        f"{frame.f_code.co_filename.rpartition('/torchstone/')[2]}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if is_ours(frame.f_code.co_filename)
    ]
    return f"torchstone/{places[-1]}" if places else "torchstone"
