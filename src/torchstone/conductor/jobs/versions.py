"""Versions of installed packages, without loading them: torch alone would take seconds."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed(package: str) -> str:
    """The version of a package; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
