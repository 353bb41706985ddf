"""An environment made from a project's requirements: wheels only, outside the project's tree.

Wheels are unpacked, not run. The folder is never on the path of the process that fills it: what its
packages would run on their own waits for the sandbox.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.starting.project import read_imports
from torchstone.starting.requirements import Requirement, declared_requirements

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
_SPEC = re.compile(r"[=<>!~,.\w*+-]{0,80}")
_SECONDS = 1800.0
_ALWAYS = (Requirement("torch"), Requirement("numpy"))
_DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "skimage": "scikit-image",
    "pytorch_lightning": "pytorch-lightning",
    "bs4": "beautifulsoup4",
    "attr": "attrs",
    "google": "protobuf",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "hydra": "hydra-core",
    "tensorboardX": "tensorboardx",
    "torch_geometric": "torch-geometric",
}
"""Packages that are imported by another name than they are installed by."""
Run = Callable[[Sequence[str]], int]


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
    basis = json.dumps([sys.version, *map(str, wanted)])
    prefix = cache / hashlib.sha256(basis.encode()).hexdigest()[:16]
    done = prefix / "built.json"
    if done.is_file():
        known = json.loads(done.read_text("utf-8"))
        return Built(str(prefix), tuple(known["installed"]), tuple(known["failed"]))
    _make_folder(prefix)
    failed = _install(wanted, prefix, run or _run_client)
    installed = tuple(str(item) for item in wanted if str(item) not in failed)
    if "torch" in failed:
        raise InputError(
            "--build-env",
            "torch could not be installed",
            Text("an index with wheels of torch", "含 torch wheel 的软件源"),
            Text(
                "make the environment yourself and give --python", "请自行创建环境并使用 --python"
            ),
        )
    done.write_text(json.dumps({"installed": installed, "failed": failed}), "utf-8")
    return Built(str(prefix), installed, failed)


def wanted_packages(root: Path) -> tuple[Requirement, ...]:
    """What the project declares, and what its files import besides; names and versions only."""
    declared = {item.name.lower().replace("_", "-"): item for item in declared_requirements(root)}
    imports = read_imports(root)
    for name in sorted(imports.needed - set(imports.modules) - set(sys.stdlib_module_names)):
        package = _DISTRIBUTIONS.get(name, name).lower().replace("_", "-")
        declared.setdefault(package, Requirement(package))
    for item in _ALWAYS:
        declared[item.name] = item  # the project's pins are of another Python
    return tuple(
        item
        for _, item in sorted(declared.items())
        if _NAME.fullmatch(item.name) and _SPEC.fullmatch(item.versions)
    )


def _make_folder(prefix: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (prefix / "lib" / version / "site-packages").mkdir(parents=True, exist_ok=True)
    (prefix / "bin").mkdir(exist_ok=True)
    link = prefix / "bin" / "python"
    if not link.is_symlink():
        link.symlink_to(Path(sys.executable).resolve())


def _install(wanted: Sequence[Requirement], prefix: Path, run: Run) -> tuple[str, ...]:
    """All at once with their versions, else without them, else one by one; those that failed."""
    folder = next((prefix / "lib").glob("python*/site-packages"))
    command = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--upgrade",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "--target",
        str(folder),
    ]
    if not run([*command, *map(str, wanted)]) or not run(
        [*command, *(item.name for item in wanted)]
    ):
        return ()
    return tuple(str(item) for item in wanted if run([*command, item.name]))


def _run_client(command: Sequence[str]) -> int:
    try:
        return subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=_SECONDS,
        ).returncode
    except subprocess.TimeoutExpired:
        return 1
