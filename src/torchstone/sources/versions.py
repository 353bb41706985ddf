"""Which torch a project runs with, as its own requirements say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from torchstone.sources.requirements import stated_in

Version = tuple[int, int]

_LEVELS = 4  # folders upwards in which the requirements of a package are looked for


class Requirement(NamedTuple):
    """What a project says of the torch it runs with."""

    oldest: Version
    open: bool
    """Whether everything from the oldest on is admitted, the newest release included."""


def parse_version(text: str) -> Version | None:
    match = re.match(r"^\s*v?(\d{1,4})\.(\d{1,4})", text)
    return (int(match[1]), int(match[2])) if match else None


def project_torch(folder: Path) -> Version | None:
    """The oldest torch that the nearest requirements admit; None when they do not say."""
    found = torch_requirement(folder)
    return found.oldest if found else None


def torch_requirement(folder: Path) -> Requirement | None:
    """The nearest requirement on torch; None when there is none."""
    at = folder.resolve()
    for _ in range(_LEVELS):
        found = [item for text in stated_in(at, "torch") if (item := _of_torch(text))]
        if found:
            # files of one folder serve different machines: what is advised must hold on all
            return Requirement(min(item.oldest for item in found), all(i.open for i in found))
        if (at / ".git").exists() or at.parent == at:
            return None
        at = at.parent
    return None


def _of_torch(text: str) -> Requirement | None:
    if not text.lstrip().lower().startswith("torch"):
        return None
    # loaded only for projects that state a torch
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Stated
    from packaging.version import InvalidVersion
    from packaging.version import Version as Release

    try:
        stated = Stated(text)
        if stated.name.lower() != "torch":
            return None
        rows = [(item.operator, item.version.removesuffix(".*")) for item in stated.specifier]
        below = [sign for sign, _ in rows if sign in ("<", "<=")]
        least = [Release(text) for sign, text in rows if sign in ("==", "~=", ">=", ">", "===")]
    except (InvalidRequirement, InvalidVersion, ValueError):  # the last: thousands of digits
        return None
    if not least:
        return None
    pinned = any(sign in ("==", "===", "~=") for sign, _ in rows)
    oldest = max(least)  # every clause holds at once
    return Requirement((oldest.major, oldest.minor), not pinned and not below)


def is_kept_below(folder: Path, package: str, release: str) -> bool:
    """Whether the nearest requirements on a package keep it below a release, or at most at it."""
    at = folder.resolve()
    for _ in range(_LEVELS):
        found = [text for text in stated_in(at, package) if text.lower().startswith(package)]
        if found:
            return any(_keeps_below(text, package, release) for text in found)
        if (at / ".git").exists() or at.parent == at:
            return False
        at = at.parent
    return False


def _keeps_below(text: str, package: str, release: str) -> bool:
    # loaded only for projects that state the package
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Stated
    from packaging.version import InvalidVersion
    from packaging.version import Version as Release

    try:
        stated = Stated(text)
        return stated.name.lower() == package and any(
            Release(item.version.removesuffix(".*")) <= Release(release)
            for item in stated.specifier
            if item.operator in ("==", "===", "~=", "<", "<=")
        )
    except (InvalidRequirement, InvalidVersion, ValueError):
        return False
