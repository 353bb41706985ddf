"""An environment made from a project's requirements: wheels only, outside the project's tree.

Wheels are unpacked, not run, and lie in a folder above our own packages: torch is the one that runs
Torchstone. The folder is never on the path of the process that fills it: what its packages would run
on their own waits for the sandbox.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.starting.interpreters import LAYER
from torchstone.starting.requirements import Requirement, wanted_packages

_LAYOUT = 2
"""Of what is built: what an older version made is made anew."""
_SECONDS = 1800.0
_MOST_TRIES = 24
"""Each try of the resolver takes away one thing that the index does not have."""
_ALL_TRIES = 8
"""Tries with all that is declared; files of conda name dozens of libraries of the system."""
_NONE_FOUND = re.compile(
    r"No matching distribution found for ([A-Za-z0-9][\w.-]*)[^\n(]*(?:\(from ([A-Za-z0-9][\w.-]*))?"
)
_CONFLICT = re.compile(r"Cannot install (.+?) because")
_EXACT = re.compile(r"[=~]==?(\d+)((?:\.\d+)*)(?:\.\*)?")
_BEFORE_2 = re.compile(r"<\s*2(?![\d])|[=~]=\s*[01]\.|<=?\s*1\b|<=?\s*1\.")
"""Versions of numpy from before its names changed."""
_OURS = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
"""Are there, or come with the torch that is."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a call of the client left."""

    code: int
    printed: str = ""
    errors: str = ""


Run = Callable[[Sequence[str]], Finished]


@dataclass(frozen=True, slots=True)
class Built:
    """A folder that can be given to `--python`."""

    prefix: str
    installed: tuple[str, ...]
    failed: tuple[str, ...]
    """Requirements for which there is no wheel."""


def build_environment(root: Path, cache: Path, run: Run | None = None) -> Built:
    """The environment of a project; the one that was built before for the same requirements."""
    wanted = wanted_packages(root)
    held = _held(wanted)
    basis = json.dumps([_LAYOUT, sys.version, *map(_own_version, held), *map(str, wanted)])
    prefix = cache / hashlib.sha256(basis.encode()).hexdigest()[:16]
    done = prefix / "built.json"
    folder = _make_folder(prefix)  # known or new: our own packages may lie elsewhere than last time
    if done.is_file():
        known = json.loads(done.read_text("utf-8"))
        return Built(str(prefix), tuple(known["installed"]), tuple(known["failed"]))
    run = run or _run_client
    wheels, failed = _resolve(wanted, held, prefix, run)
    if wheels:
        _install(wheels, folder, run)
    installed = tuple(wheel.name for wheel in wheels)
    done.write_text(json.dumps({"installed": installed, "failed": failed}), "utf-8")
    return Built(str(prefix), installed, failed)


@dataclass(frozen=True, slots=True)
class _Wheel:
    name: str
    version: str
    url: str


def _own_version(name: str) -> str:
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


def _make_folder(prefix: Path) -> Path:
    """The folder for the packages; a line in it names ours, which come after them."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = prefix / "lib" / version / "site-packages"
    folder.mkdir(parents=True, exist_ok=True)
    (prefix / "bin").mkdir(exist_ok=True)
    link = prefix / "bin" / "python"
    if not link.is_symlink():
        link.symlink_to(Path(sys.executable).resolve())
    (folder / LAYER).write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
    return folder


_CLIENT = ("-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")


def _held(wanted: Sequence[Requirement]) -> tuple[str, ...]:
    """Packages that stay ours: numpy too, unless the project asks for one from before version 2."""
    older = any(item.name.lower() == "numpy" and _BEFORE_2.search(item.versions) for item in wanted)
    return ("torch",) if older else ("torch", "numpy")


def _resolve(
    wanted: Sequence[Requirement], held: Sequence[str], prefix: Path, run: Run
) -> tuple[tuple[_Wheel, ...], tuple[str, ...]]:
    """Wheels that fit each other, our torch and our numpy, and the requirements that had to be left out.

    What is installed beside Torchstone counts as installed: the folder lies above it. A version that has no wheel for this Python is widened to the later ones of the same major number, then
    given up, before the package is. Versions that do not fit each other are all widened together.
    """
    limits = prefix / "constraints.txt"
    versions = [(name, _own_version(name)) for name in held]
    limits.write_text("".join(f"{name}=={text}\n" for name, text in versions if text), "utf-8")
    left = {_key(item.name): item for item in wanted}
    failed: list[str] = []
    command = [sys.executable, *_CLIENT, "--dry-run", "--only-binary", ":all:",
               "--report", "-", "--constraint", str(limits)]  # fmt: skip
    for count in range(_MOST_TRIES):
        if (
            count == _ALL_TRIES
        ):  # packages of another index: those that nothing imports are given up
            failed += [str(item) for item in left.values() if not item.is_imported]
            left = {key: item for key, item in left.items() if item.is_imported}
        if not left:
            break
        finished = run([*command, *map(str, left.values())])
        if not finished.code:
            return _wheels(finished.printed), tuple(failed)
        key = _named_in(finished.errors, left)
        if key in left and left[key].versions:
            left[key] = _widen(left[key])
        elif key in left:
            failed.append(str(left.pop(key)))
        elif any(item.versions for item in left.values()):
            left = {name: _widen(item) for name, item in left.items()}
        else:
            return _resolve_apart(left.values(), command, run, failed)
    return (), tuple(failed)


def _widen(item: Requirement) -> Requirement:
    """An exact version becomes the later ones of its major number, which keep the interface; anything else is
    given up."""
    match = _EXACT.fullmatch(item.versions)
    versions = f">={match[1]}{match[2]},<{int(match[1]) + 1}" if match else ""
    return replace(item, versions=versions)


def _resolve_apart(
    wanted: Iterable[Requirement], command: Sequence[str], run: Run, failed: Sequence[str]
) -> tuple[tuple[_Wheel, ...], tuple[str, ...]]:
    """Where nobody says what stands in the way: each requirement by itself; the first choice of a version stays."""
    found: dict[str, _Wheel] = {}
    left_out = list(failed)
    errors = ""
    for item in wanted:
        finished = run([*command, str(item)])
        if finished.code:
            left_out.append(str(item))
            errors = finished.errors
            continue
        for wheel in _wheels(finished.printed):
            found.setdefault(wheel.name, wheel)
    if errors and not found:
        _refuse(errors)
    return tuple(found.values()), tuple(left_out)


def _named_in(errors: str, left: Mapping[str, Requirement]) -> str:
    """The requirement that has no wheel, or the last one of those that do not fit each other."""
    if match := _NONE_FOUND.search(errors):
        asked_by = _key(match[2] or "")
        return asked_by if _key(match[1]) not in left and asked_by in left else _key(match[1])
    if match := _CONFLICT.search(errors):
        names = [_key(word.strip().partition("=")[0]) for word in re.split(r",| and ", match[1])]
        return next((name for name in reversed(names) if name in left), "")
    return ""


def _refuse(errors: str) -> None:
    last = (errors.strip().splitlines() or ["pip failed"])[-1]
    raise InputError(
        "--build-env",
        last[:200],
        Text("packages that can be installed together", "可以一起安装的软件包"),
        Text("make the environment yourself and give --python", "请自行创建环境并使用 --python"),
    )


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _wheels(report: str) -> tuple[_Wheel, ...]:
    """What the resolver chose, apart from what we have in the same version."""
    found: list[_Wheel] = []
    for item in json.loads(report[report.index("{") :])["install"]:
        data = item["metadata"]
        name, version = _key(data["name"]), str(data["version"])
        if not _OURS.fullmatch(name) and not _is_ours(name, version):
            found.append(_Wheel(name, version, item["download_info"]["url"]))
    return tuple(found)


def _is_ours(name: str, version: str) -> bool:
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False


def _install(wheels: Sequence[_Wheel], folder: Path, run: Run) -> None:
    addresses = [wheel.url for wheel in wheels]
    command = [sys.executable, *_CLIENT, "--no-deps", "--only-binary", ":all:", "--target", str(folder)]  # fmt: skip
    finished = run([*command, *addresses])
    if finished.code:
        _refuse(finished.errors)


def _run_client(command: Sequence[str]) -> Finished:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Finished(1, "", f"pip took more than {_SECONDS:.0f} s")
    return Finished(done.returncode, done.stdout, done.stderr)
