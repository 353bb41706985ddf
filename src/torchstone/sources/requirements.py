"""Every requirement that the files of a folder state, read with the parser of each format."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from torchstone.core.files import read_regular

_BYTES = 200_000  # a list of requirements is far shorter; a lock file says nothing more
_FILES = 40  # that are read in one folder
_IMAGE = re.compile(r"^FROM\s+(?:\S*/)?pytorch/pytorch:v?(\d+\.\d+)", re.I | re.M)
_CONDA = re.compile(r"^(?:[\w.-]+::)?([\w.-]+?)\s*(?:(==|>=|<=|!=|~=|>|<|=)\s*(\S.*)|\s+(\S.*))?$")


def stated_in(folder: Path, word: str, listed_only: bool = False) -> Iterator[str]:
    """The requirements (as PEP 508 writes them) of the files in a folder that hold a word. Where only
    lists count, any string of a `setup.py` and any word of a command are left out."""
    for path, reader in _readable(folder):
        text = _read(path)
        if word in text:
            yield from _LISTED.get(reader, reader)(text) if listed_only else reader(text)


def _readable(folder: Path) -> Iterator[tuple[Path, Callable[[str], Iterator[str]]]]:
    """The files of a folder that state requirements, with what reads them."""
    found: list[tuple[Path, Callable[[str], Iterator[str]]]] = []
    try:
        for path in sorted(folder.iterdir()):
            readers = [read for name, read in _READERS.items() if fnmatch(path.name.lower(), name)]
            found += [(path, read) for read in readers[:1]]
        found += [(path, _of_lines) for path in sorted((folder / "requirements").glob("*.txt"))]
    except OSError:
        pass  # a folder that cannot be listed states nothing
    yield from found[:_FILES]


def _read(path: Path) -> str:
    try:
        return read_regular(path, _BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _of_lines(text: str) -> Iterator[str]:
    """`requirements.txt`: a requirement a line; options and addresses are none."""
    for line in text.replace("\\\n", " ").splitlines():
        stated = line.partition(" #")[0].partition(" --")[0].strip()
        if stated and not stated.startswith(("-", "#")):
            yield stated


def _of_pyproject(text: str) -> Iterator[str]:
    data = _toml(text)
    project, tool = _table(data, "project"), _table(data, "tool")
    yield from _strings(project.get("dependencies"))
    for table in (_table(project, "optional-dependencies"), _table(data, "dependency-groups")):
        for rows in table.values():
            yield from _strings(rows)
    poetry = _table(tool, "poetry")
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    groups = [item for item in _table(poetry, "group").values() if isinstance(item, dict)]
    tables += [_table(item, "dependencies") for item in groups]
    tables.append(_table(_table(tool, "pixi"), "dependencies"))
    for rows in tables:
        yield from _of_table(rows)


def _of_pipfile(text: str) -> Iterator[str]:
    data = _toml(text)
    for name in ("packages", "dev-packages"):
        yield from _of_table(_table(data, name))


def _of_table(rows: dict[str, object]) -> Iterator[str]:
    """`torch = "^1.12"` and `torch = {version = "==1.12.1", …}`."""
    for name, value in rows.items():
        version = value.get("version", "") if isinstance(value, dict) else value
        if isinstance(version, str):
            yield f"{name}{_caret(version)}"


def _caret(version: str) -> str:
    """`^1.12` admits everything below the next major release; a bare version is pinned."""
    version = version.strip()
    if version.startswith("^"):
        least = version[1:]
        major = least.partition(".")[0]
        return f">={least},<{int(major) + 1}" if major.isdigit() else ""
    if version.startswith("~") and not version.startswith("~="):
        return f"=={version[1:]}.*"
    return f"=={version}" if version[:1].isdigit() else "" if version == "*" else version


def _toml(text: str) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _table(data: dict[str, object], name: str) -> dict[str, object]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _strings(rows: object) -> Iterator[str]:
    for item in rows if isinstance(rows, list) else ():
        if isinstance(item, str):
            yield item


def _of_conda(text: str) -> Iterator[str]:
    """An environment of conda: its own packages, and the list under `pip:`."""
    import yaml  # type: ignore[import-untyped]

    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    rows = data.get("dependencies") if isinstance(data, dict) else None
    for item in rows if isinstance(rows, list) else ():
        if isinstance(item, str):
            yield _of_conda_package(item)
        elif isinstance(item, dict):
            yield from _strings(item.get("pip"))


def _of_conda_package(text: str) -> str:
    """`pytorch::pytorch=1.12.1=py3.9_cuda11.3` as `torch==1.12.1.*`."""
    match = _CONDA.match(text.strip())
    if match is None:
        return ""
    name = "torch" if match[1].startswith("pytorch") and "-" not in match[1] else match[1]
    version = (match[3] or match[4] or "").strip()
    sign = match[2] or ("" if version[:1] in "<>=!~" else "=")
    if not version:
        return name
    if sign in ("=", "=="):  # a build may follow
        version = version.partition("=")[0].strip().rstrip("*").rstrip(".")
        return f"{name}=={version}.*" if sign == "=" else f"{name}=={version}"
    return f"{name}{sign}{version}"


def _of_setup_cfg(text: str) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    yield from _of_lines(parser.get("options", "install_requires", fallback=""))
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            yield from _of_lines(value)


def _of_setup_py(text: str) -> Iterator[str]:
    """The strings that a `setup.py` writes down; it is read, never run."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield node.value


def _of_dockerfile(text: str) -> Iterator[str]:
    """The image of PyTorch itself, and what `pip install` and `conda install` name."""
    for version in _IMAGE.findall(text):
        yield f"torch=={version}.*"
    for line in text.replace("\\\n", " ").splitlines():
        for command in re.split(r"&&|;|\|\|", line) if "install" in line else ():
            try:
                words = shlex.split(command, comments=True)
            except ValueError:
                continue
            if "install" in words:
                conda = any(word.endswith(("conda", "mamba")) for word in words)
                for word in words[words.index("install") + 1 :]:
                    yield _of_conda_package(word) if conda else word


_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    "pyproject.toml": _of_pyproject,
    "pipfile": _of_pipfile,
    "*requirements*.txt": _of_lines,
    "requirements*.in": _of_lines,
    "constraints*.txt": _of_lines,
    "*env*.y*ml": _of_conda,
    "conda*.y*ml": _of_conda,
    "setup.cfg": _of_setup_cfg,
    "setup.py": _of_setup_py,
    "*dockerfile*": _of_dockerfile,
    "meta.yaml": _of_conda,
}


def _of_install_requires(text: str) -> Iterator[str]:
    """The strings of `install_requires=[…]` alone."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            for item in getattr(node.value, "elts", ()):
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield item.value


def _of_nothing(text: str) -> Iterator[str]:
    del text
    yield from ()


_LISTED: dict[Callable[[str], Iterator[str]], Callable[[str], Iterator[str]]] = {
    _of_setup_py: _of_install_requires,
    _of_dockerfile: _of_nothing,
}
"""Readers that take what they find, and what reads only the lists of the same files."""
