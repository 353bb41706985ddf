"""The Python environment that a project brings, and whether it can run here.

The interpreter itself is trusted only where the user named or activated it, or where it lies outside
the project. Packages of the environment are code like the project's own: they are put on the path
inside the sandbox, never before.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.text import Text

OLDEST = (3, 11)
"""What Torchstone itself is written for."""
_FOLDERS = (".venv", "venv", "env")
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PTH_BYTES = 1 << 16
_VERSION = re.compile(r"python(\d+)\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter with the folders of its packages."""

    executable: str = ""
    """Empty: the one that runs Torchstone, with its own packages below those that are named."""
    packages: tuple[str, ...] = ()
    prefix: str = ""
    """The environment's folder, which has to be readable."""


OURS = Interpreter()
LAYER = "torchstone-base.pth"
"""Names the packages that those of a built environment lie above."""


def find_interpreter(named: str, root: Path) -> Interpreter:
    """The environment that was named, else an activated one, else the project's own; else ours."""
    if named:
        return _named(Path(named))
    active = (Path(os.environ[name]) for name in _ACTIVE if os.environ.get(name))
    for prefix in (*active, *(root / name for name in _FOLDERS)):
        if prefix.resolve() == Path(sys.prefix).resolve():
            return OURS  # Torchstone is installed in it
        if (found := _usable(prefix, root)) is not None:
            return found
    return OURS


def _named(path: Path) -> Interpreter:
    executable = path / "bin" / "python" if path.is_dir() else path
    prefix = executable.absolute().parent.parent
    version = next(_versions(prefix), None)
    if not os.access(executable, os.X_OK) or version is None:
        raise InputError(
            "--python",
            str(path),
            Text("an interpreter of an environment, or its folder", "某个环境的解释器，或其文件夹"),
            Text("for example: --python .venv/bin/python", "例如：--python .venv/bin/python"),
        )
    if version < OLDEST:
        raise InputError(
            "--python",
            f"{path}: Python {version[0]}.{version[1]}",
            Text(
                "Python 3.11 or newer, in which Torchstone can run",
                "Torchstone 可运行的 Python 3.11 或更新版本",
            ),
            Text("make the environment with a newer Python", "请用较新的 Python 创建该环境"),
        )
    if not _has_torch(prefix, version):
        raise InputError(
            "--python",
            f"{path}: no torch in it",
            Text("an environment with torch", "装有 torch 的环境"),
            Text("install torch into it", "请在其中安装 torch"),
        )
    if _is_layer(prefix, version):
        return Interpreter("", _packages(prefix, version), str(prefix))
    return Interpreter(str(executable.resolve()), _packages(prefix, version), str(prefix))


def _usable(prefix: Path, root: Path) -> Interpreter | None:
    """An environment that nobody named is used only where all of it fits."""
    executable = (prefix / "bin" / "python").resolve()
    version = next(_versions(prefix), None)
    is_inside = executable.is_relative_to(root.resolve())
    if version is None or version < OLDEST or is_inside or not os.access(executable, os.X_OK):
        return None
    if not _has_torch(prefix, version):
        return None
    return Interpreter(str(executable), _packages(prefix, version), str(prefix))


def _versions(prefix: Path) -> Iterator[tuple[int, int]]:
    for folder in sorted(prefix.glob("lib/python3.*")):
        if match := _VERSION.match(folder.name):
            yield int(match[1]), int(match[2])


def _packages(prefix: Path, version: tuple[int, int]) -> tuple[str, ...]:
    name = f"lib/python{version[0]}.{version[1]}/site-packages"
    found = [prefix / name, prefix / name.replace("lib/", "lib64/", 1)]
    return tuple(dict.fromkeys(str(path.resolve()) for path in found if path.is_dir()))


def _has_torch(prefix: Path, version: tuple[int, int]) -> bool:
    """In its own packages, or in those that a line of a `.pth` file there names."""
    for folder in map(Path, _packages(prefix, version)):
        lines = (line for file in folder.glob("*.pth") for line in _lines(file))
        if any((place / "torch").is_dir() for place in (folder, *map(Path, lines))):
            return True
    return False


def _lines(file: Path) -> list[str]:
    try:
        text = read_regular(file, _PTH_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if os.path.isabs(line)]


def _is_layer(prefix: Path, version: tuple[int, int]) -> bool:
    """Whether its packages were built to lie above ours."""
    ours = sysconfig.get_path("purelib")
    files = [Path(folder, LAYER) for folder in _packages(prefix, version)]
    own_numpy = any(Path(folder, "numpy").is_dir() for folder in _packages(prefix, version))
    return (
        version == sys.version_info[:2]
        and not own_numpy  # another one is loaded in our process
        and any(ours in _lines(file) for file in files)
    )


def use_packages(interpreter: Interpreter) -> None:
    """Packages of an environment for this version of Python, before ours; only in the sandbox."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for folder in interpreter.packages:
        if version in Path(folder).parts:
            before = list(sys.path)
            site.addsitedir(folder)
            added = [path for path in sys.path if path not in before]
            sys.path[:] = [*added, *before]
