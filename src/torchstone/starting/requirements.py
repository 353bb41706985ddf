"""The packages that a project asks for: names and versions, each once."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchstone.sources.requirements import stated_in
from torchstone.starting.project import read_imports

_LEVELS = 4
"""Folders above a script in which the project's files are looked for."""
_STATED = re.compile(r"^([A-Za-z][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([=<>!~][^;()]*)?\)?\s*(?:;.*)?$")
_SPEC = re.compile(r"[=<>!~,.\w*+-]{0,80}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "opencv-python": "opencv-python-headless",
    "opencv-contrib-python": "opencv-python-headless",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "skimage": "scikit-image",
    "bs4": "beautifulsoup4",
    "attr": "attrs",
    "google": "protobuf",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "hydra": "hydra-core",
    "pytorch": "torch",
    "absl": "absl-py",
    "gym": "gymnasium",
    "pkg_resources": "setuptools",
    "mpl_toolkits": "matplotlib",
    "skvideo": "scikit-video",
    "umap": "umap-learn",
    "Levenshtein": "levenshtein",
    "git": "gitpython",
    "serial": "pyserial",
    "Crypto": "pycryptodome",
    "ruamel": "ruamel-yaml",
    "faiss": "faiss-cpu",
    "faiss-gpu": "faiss-cpu",
    "tensorflow-gpu": "tensorflow",
}
"""Packages that are imported, or were installed, by another name than they are installed by now."""
_NEVER = frozenset("python pip torch cudatoolkit cuda nvidia-apex apex wheel".split())
"""Not wheels of the index, or the torch that is there already."""
_FOR_WRITING = re.compile(
    r"jupyter.*|notebook|ipykernel|ipython|pytest.*|pre-commit|black|flake8.*|mypy|isort|pylint|ruff|sphinx.*"
    r"|tensorflow|jax|coverage|yapf|twine"
)
"""Large, and nothing is trained with them unless they are imported."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One package, by the name of its distribution, with the versions that are admitted."""

    name: str
    versions: str = ""
    is_imported: bool = field(default=False, compare=False)
    """By a file of the project."""

    def __str__(self) -> str:
        return f"{self.name}{self.versions}"


_WITH_PKG_RESOURCES = Requirement("setuptools", "<81")
"""Older packages import `pkg_resources` without asking for what holds it."""


def declared_requirements(folder: Path) -> tuple[Requirement, ...]:
    """All that the nearest files with requirements name; addresses and paths are left out."""
    at = folder.resolve()
    for _ in range(_LEVELS):
        found: dict[str, Requirement] = {}
        for text in stated_in(at, "", listed_only=True):
            match = _STATED.match(text.strip())
            if match and match[1].lower() not in ("python", "pip"):
                versions = re.sub(r"\s+", "", match[2] or "").rstrip(",")
                name = DISTRIBUTIONS.get(match[1], match[1])
                kept = versions if name == match[1] else ""  # versions of another distribution
                found.setdefault(_key(name), Requirement(name, kept))
        if found:
            return tuple(found.values())
        if (at / ".git").exists() or at.parent == at:
            break
        at = at.parent
    return ()


def wanted_packages(root: Path) -> tuple[Requirement, ...]:
    """What the project declares, and what its files import besides; names and versions only."""
    declared = {_key(item.name): item for item in declared_requirements(root)}
    imports = read_imports(root)
    for key in [key for key in declared if _FOR_WRITING.fullmatch(key)]:
        if key not in imports.needed:
            del declared[key]
    for name in sorted(imports.needed - set(imports.modules) - set(sys.stdlib_module_names)):
        package = _key(DISTRIBUTIONS.get(name, name))
        declared[package] = replace(declared.get(package, Requirement(package)), is_imported=True)
    if "tensorboard" in imports.through_torch:
        declared.setdefault("tensorboard", Requirement("tensorboard"))
    declared["setuptools"] = _WITH_PKG_RESOURCES
    return tuple(
        item
        for key, item in sorted(declared.items())
        if key not in _NEVER and _NAME.fullmatch(item.name) and _SPEC.fullmatch(item.versions)
    )


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
