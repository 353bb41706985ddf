"""Which form a missing file has: from its name, and from what the code that reads it does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from torchstone.starting.supplies import MadeFile

_IMAGES = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".ppm", ".webp", ".gif"))
_SOUNDS = frozenset((".wav", ".flac", ".mp3", ".ogg"))
_TABLES = {".csv": "", ".tsv": "tab", ".data": "", ".rating": "tab", ".dat": ""}
_DTYPES = {
    "uint16": "<u2",
    "int64": "<i8",
    "int32": "<i4",
    "float32": "<f4",
    "float64": "<f8",
    "uint8": "|u1",
}
_PATTERN = re.compile(r"\*{1,2}/?\*?(\.\w+)")
_CLASSES = 2
_FILES = 8
"""In a made folder: two batches of the small kind, and enough for a split."""


def forms_of(path: str, is_folder: bool, sources: list[str]) -> tuple[MadeFile, ...]:
    """Files to make for a path that is missing; nothing where its form is not known."""
    suffix = PurePath(path).suffix.lower()
    if is_folder or not suffix:
        return tuple(_folder(path, sources))
    form = _form(suffix, sources)
    return (MadeFile(path, form),) if form else ()


def _form(suffix: str, sources: list[str]) -> str:
    if suffix in _IMAGES:
        return "image"
    if suffix in _SOUNDS:
        return "sound"
    if suffix in _TABLES:
        return f"table:{_table(_TABLES[suffix], sources)}"
    if suffix == ".npy":
        return "array"
    if suffix == ".bin":
        return f"tokens:{_memmap_dtype(sources)}"
    if suffix in (".json", ".jsonl"):
        lines = "lines:" if suffix == ".jsonl" else ":"
        return f"json:{lines}{'|'.join(_subscripts(sources))}"
    return "text" if suffix in (".txt", ".text", ".en", ".de", ".src", ".tgt") else ""


def _folder(path: str, sources: list[str]) -> Iterator[MadeFile]:
    """A folder of files of the kind that the code looks for: in folders by class where it uses one."""
    text = "\n".join(sources)
    patterns = _PATTERN.findall(text)
    suffix = next(
        (item.lower() for item in patterns if item.lower() in (*_IMAGES, *_SOUNDS)), ".png"
    )
    form = "image" if suffix in _IMAGES else "sound"
    by_class = "ImageFolder" in text or "DatasetFolder" in text
    for place in range(_FILES):
        home = f"{path}/class{place % _CLASSES}" if by_class else path
        yield MadeFile(f"{home}/{place:04d}{suffix}", form)


def _table(separator: str, sources: list[str]) -> str:
    """`separator|column|...`: what `read_csv` is told, and the columns that are named later."""
    for call in _calls(sources, ("read_csv", "read_table")):
        given = {item.arg: item.value for item in call.keywords}
        if isinstance(named := given.get("sep") or given.get("delimiter"), ast.Constant):
            separator = {"\t": "tab", " ": "space", ",": ""}.get(
                str(named.value), str(named.value)[:1]
            )
        if isinstance(names := given.get("names"), (ast.List, ast.Tuple)):
            return "|".join((separator, *(f"!#{_text(item)}" for item in names.elts)))
    columns = list(_subscripts(sources))
    return "|".join((separator, *(columns or ("a", "b", "c"))))


def _memmap_dtype(sources: list[str]) -> str:
    for call in _calls(sources, ("memmap", "fromfile")):
        for item in (*call.args, *(word.value for word in call.keywords)):
            if isinstance(item, ast.Attribute) and item.attr in _DTYPES:
                return _DTYPES[item.attr]
    return "<u2"


def _subscripts(sources: list[str]) -> tuple[str, ...]:
    """Texts by which something is subscripted."""
    found: dict[str, None] = {}
    for tree in _trees(sources):
        for node in ast.walk(tree):
            inner = node.slice if isinstance(node, ast.Subscript) else None
            for item in inner.elts if isinstance(inner, (ast.List, ast.Tuple)) else (inner,):
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    if re.fullmatch(r"[\w .#-]{1,40}", item.value):
                        found[item.value] = None
    return tuple(found)[:40]


def _calls(sources: list[str], names: tuple[str, ...]) -> Iterator[ast.Call]:
    for tree in _trees(sources):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _text(node.func).rpartition(".")[2] in names:
                yield node


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def _trees(sources: list[str]) -> Iterator[ast.Module]:
    for text in sources:
        try:
            yield ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
