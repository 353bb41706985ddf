"""Score a review of a project whose faults are known: `score.py FOLDER [FOLDER …]`.

`NAME.faults.json` stands beside the folder `NAME`, its clean twin is `NAME_clean`. A fault is found
when a finding stands within three lines of it in its file, or, for probes and dry runs, in the same
function.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.choices import Lead
from torchstone.conductor.drivers.planner import Planner
from torchstone.conductor.jobs.job import GOALS, Scope
from torchstone.conductor.phases.execute import Conditions, Execution, execute
from torchstone.conductor.phases.interpret import interpret
from torchstone.conductor.phases.plan import make_plan
from torchstone.conductor.phases.problems import OUTSIDE
from torchstone.conductor.project.copying import copied
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.conductor.project.reach import map_reach
from torchstone.conductor.project.survey import survey
from torchstone.core.finding import Finding, Severity

NEAR_LINES = 3
FIRST = 5


@dataclass(frozen=True)
class Fault:
    id: str
    file: str
    line: int
    mechanism: str
    rules: tuple[str, ...]


def read_faults(path: Path) -> list[Fault]:
    data = json.loads(path.read_text("utf-8"))
    rows = data["faults"] if isinstance(data, dict) else data
    return [Fault(row["id"], row["file"], int(row.get("line", row.get("line_first"))), row.get("mechanism", ""),
                  tuple(row.get("rules", ()))) for row in rows]  # fmt: skip


def review(root: Path, use_cache: bool) -> tuple[ProjectFacts, Scope, Execution]:
    facts = survey(root)
    plan = make_plan(facts, Scope(GOALS), (), Lead(Planner(), lambda *_: None))
    with copied(root) as copy:
        done = execute(plan, copy, Conditions(use_cache=use_cache), lambda *_: None, lambda _: None)
    return facts, plan.scope, done


def function_of(root: Path, path: str, line: int) -> tuple[int, int]:
    """First and last line of the innermost function around a line."""
    try:
        tree = ast.parse((root / path).read_text("utf-8"))
    except (OSError, SyntaxError):
        return line, line
    found = [(node.lineno, node.end_lineno or node.lineno) for node in ast.walk(tree)
             if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
             and node.lineno <= line <= (node.end_lineno or node.lineno)]  # fmt: skip
    return max(found, default=(line, line))


def hits(root: Path, fault: Fault, finding: Finding) -> bool:
    if finding.path != fault.file:
        return False
    if fault.rules and finding.rule not in fault.rules:
        return False
    if abs(finding.line - fault.line) <= NEAR_LINES:
        return True
    first, last = function_of(root, fault.file, fault.line)
    return finding.tool in ("probes", "dryrun") and first <= finding.line <= last


def own(execution: Execution) -> list[Finding]:
    return [
        item for report in execution.reports for item in report.findings if item.tool not in OUTSIDE
    ]


def score(root: Path, use_cache: bool) -> bool:
    faults = read_faults(root.parent / f"{root.name}.faults.json")
    started = time.monotonic()
    facts, scope, done = review(root, use_cache)
    findings = own(done)
    found = [fault for fault in faults if any(hits(root, fault, item) for item in findings)]
    problems = interpret(
        done,
        facts,
        scope,
        map_reach(root, tuple(item.path for item in facts.entry_points)),
        Lead(Planner(), lambda _: None),
    ).problems[:FIRST]
    true = [item for item in problems if any(near(root, fault, item.findings) for fault in faults)]
    print(f"{root.name}: {len(found)} of {len(faults)} faults found; first {len(problems)}: {len(true)} true; "
          f"{time.monotonic() - started:.0f} s, {sum(item.cpu_seconds for item in done.results):.0f} s of CPU")  # fmt: skip
    for fault in faults:
        if fault not in found:
            print(f"  missed {fault.id} {fault.file}:{fault.line} {fault.mechanism}")
    for item in problems:
        if item not in true:
            print(f"  not planted: {item.finding.rule} {item.where} {item.finding.message()}")
    twin = root.parent / f"{root.name}_clean"
    false = (
        [item for item in own(review(twin, use_cache)[2]) if item.severity is Severity.HIGH]
        if twin.is_dir()
        else []
    )
    for item in false:
        print(f"  false HIGH on {twin.name}: {item.rule} {item.location} {item.message()}")
    return len(found) == len(faults) and not false


def near(root: Path, fault: Fault, findings: Iterable[Finding]) -> bool:
    """As `hits`, whatever the rule."""
    loose = Fault(fault.id, fault.file, fault.line, fault.mechanism, ())
    return any(hits(root, loose, item) for item in findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--no-cache", action="store_true")
    args = parser.parse_args()
    well = [score(folder.resolve(), not args.no_cache) for folder in args.folders]
    sys.exit(not all(well))


if __name__ == "__main__":
    main()
