"""Packages beside Torchstone: which extra brings them, which torch is installed. Loads none of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

OLDEST_TORCH = (2, 6)
"""The oldest torch that every tool is run on before a release; see docs/versions.md."""
_IMPORTED_AS = {"yaml": "pyyaml", "PIL": "pillow", "hydra": "hydra-core"}


@dataclass(frozen=True, slots=True)
class TorchVersion:
    """The installed torch: its version as text, and the two numbers that are compared."""

    text: str
    numbers: tuple[int, int]


def installed_torch() -> TorchVersion | None:
    """Read from its metadata, without importing it; None when there are none."""
    try:
        text = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
    found = re.match(r"(\d+)\.(\d+)", text)
    return TorchVersion(text, (int(found[1]), int(found[2]))) if found else None


def documentation() -> str:
    """The address of the published documentation: `Documentation` below [project.urls] of
    pyproject.toml, the only place where it is set. "" as long as there is none."""
    try:
        given = metadata.metadata("torchstone").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # run from a source tree
        return ""
    for item in given:
        label, _, address = str(item).partition(",")
        if label.strip().lower() == "documentation" and address.strip().startswith("https://"):
            return address.strip().rstrip("/")
    return ""


def extra_for(module: str, preferred: str) -> str | None:
    """The extra of Torchstone that brings a module, rather the preferred one."""
    try:
        required = metadata.requires("torchstone") or []
    except metadata.PackageNotFoundError:  # run from a source tree
        return preferred if module in ("torch", "numpy", "scipy") else None
    wanted = _IMPORTED_AS.get(module, module).lower()
    extras = [
        found[2]
        for line in required
        if (found := re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", line))
        and found[1].lower() == wanted
    ]
    return preferred if preferred in extras else next(iter(extras), None)
