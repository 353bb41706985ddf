"""Which files are made for a path or a pattern of paths that is missing."""

from __future__ import annotations

import ast
import itertools
import json
import random
import re
from collections.abc import Iterator
from pathlib import PurePath

from torchstone.starting.files.contents import form_of_file, suffix_of
from torchstone.starting.files.reading import Reading
from torchstone.starting.files.structure import Node, made_value, structure_of
from torchstone.starting.supplies import MadeFile

_FILES = 256
"""Of a folder: more than a batch on each of two ranks, which may drop the last one."""
STEMS = tuple(f"{place:04d}" for place in range(_FILES))
"""Names of made files."""
_STEM = re.compile(r"(?<!\d)0(?:[01]\d\d|2[0-4]\d|25[0-5])(?!\d)")
_CLASSES = 2
_LINES = 8
_SPLITS = ("train", "val", "valid", "test")


def forms_of(path: str, is_folder: bool, reading: Reading) -> tuple[MadeFile, ...]:
    """Files to make for a path, or a pattern of paths, that is missing; nothing where its form is not known."""
    if "*" in path:
        return tuple(_of_pattern(path, reading))
    suffix = PurePath(path).suffix.lower()
    if is_folder or (not suffix and not _is_opened(reading)):
        return tuple(_folder(path, reading))
    form = form_of_file(path, suffix, reading)
    if not form:
        return ()
    content = _content(form, reading)
    return tuple(MadeFile(name, form, content) for name in _siblings(path))


def _content(form: str, reading: Reading) -> str:
    """Of a file whose structure the code shows: the value as JSON."""
    kind, _, suffix = form.partition(":")
    if kind not in ("json", "lines", "pickle"):
        return ""
    node = structure_of(reading)
    value = made_value(node, random.Random(0), suffix)
    keys = reading.subscripts() if node is None else ()
    if keys:
        flat = Node("list", element=Node("mapping", {key: Node() for key in keys}))
        value = made_value(flat, random.Random(0), suffix)
    if kind == "lines" and not isinstance(value, list):
        value = [value] * _LINES
    return json.dumps(value)


def _siblings(path: str) -> Iterator[str]:
    """The path, and those of the other made samples where it is the path of one."""
    home, _, name = path.rpartition("/")
    match = _STEM.search(name)
    if match is None:
        yield path
        return
    yield from (f"{home}/{name[: match.start()]}{stem}{name[match.end() :]}" for stem in STEMS)


def _is_opened(reading: Reading) -> bool:
    """Whether the code near by opens files, and lists no folders."""
    lists = (
        "listdir",
        "glob",
        "ImageFolder",
        "scandir",
        "walk",
        "iterdir",
        "DatasetFolder",
        "rglob",
    )
    return reading.reads_with(
        "open", "loadtxt", "genfromtxt", "readlines"
    ) and not reading.reads_with(*lists)


def _of_pattern(pattern: str, reading: Reading) -> Iterator[MadeFile]:
    """Files whose names match: eight for a star, the made samples where it names one of them."""
    filled = pattern.replace("**/", "")
    home, _, name = filled.rpartition("/")
    for place, _ in enumerate(home.split("/")):
        parts = home.split("/")
        if "*" in parts[place]:
            parts[place] = parts[place].replace("*", "class0")
            home = "/".join(parts)
    if name.endswith(".*"):
        name = name[:-1] + suffix_of(reading).lstrip(".")
    if "[" in name or "?" in name:
        return
    names = (
        [name.replace("*", stem) for stem in STEMS]
        if "*" in name
        else list(_siblings(f"{home}/{name}"))
    )
    for made in names:
        path = f"{home}/{made.rpartition('/')[2]}"
        if "." not in path.rpartition("/")[2]:
            path += suffix_of(reading)
        form = form_of_file(path, PurePath(path).suffix.lower(), reading)
        if form:
            yield MadeFile(path, form, _content(form, reading))


def _parts(reading: Reading) -> tuple[str, ...]:
    """Parts of the data that names of files are asked for: `[name for name in names if "train" in name]`."""
    asks = any(
        isinstance(node, ast.Compare) and any(isinstance(item, ast.In) for item in node.ops)
        for tree in reading.near
        for node in ast.walk(tree)
    )
    found = [word for word in _SPLITS if re.search(rf"[\"']{word}[\"']", reading.text)]
    return tuple(f"{word}_" for word in found) if asks and found else ("",)


def _folder(path: str, reading: Reading) -> Iterator[MadeFile]:
    """A folder of files of the kind that the code looks for: in folders by class where it uses one."""
    suffix = suffix_of(reading)
    by_class = reading.mentions("ImageFolder", "DatasetFolder")
    for place, (part, stem) in enumerate(itertools.product(_parts(reading), STEMS)):
        home = f"{path}/class{place % _CLASSES}" if by_class else path
        name = f"{home}/{part}{stem}{suffix}"
        form = form_of_file(name, suffix, reading)
        if form:
            yield MadeFile(name, form, _content(form, reading))
