"""Outside tools as findings of the same kind: run only when asked for, merged without duplicates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torchstone.core.options import unknown
from torchstone.core.registry import modules_in
from torchstone.core.report import Report, merge


def run_outside(tools: Iterable[str], paths: list[str], allow_plugins: bool = False) -> Report:
    """What the named tools say about the paths, as one report.

    Code that the project's configuration names for them (mypy plugins) runs only when it is allowed.
    """
    known = {module.NAME: module for module in modules_in("torchstone.lint.outside")}
    reports: list[Report] = []
    for tool in tools:
        if tool.endswith((".sarif", ".sarif.json")):
            reports.append(known["sarif"].read(Path(tool)))
        elif tool in known and tool != "sarif":
            reports.append(known[tool].run(paths, allow_plugins))
        else:
            names = [name for name in known if name != "sarif"]
            raise unknown("--with", tool, [*names, "FILE.sarif"])
    return merge(reports, "check")
