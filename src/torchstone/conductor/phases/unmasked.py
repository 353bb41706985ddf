"""What was hidden behind other problems until they were fixed, among the results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torchstone.conductor.phases.execute import Execution, ToolResult
from torchstone.core.finding import Finding
from torchstone.core.text import Text


def with_unmasked(execution: Execution, findings: Iterable[Finding]) -> Execution:
    """The results as if the run that shows each finding on the changed tree had shown it at first."""
    results = list(execution.results)
    for item in findings:
        place = next((n for n, one in enumerate(results) if _may_have_found(one, item)), None)
        if place is not None:
            report = results[place].report
            report = replace(report, findings=(*report.findings, _say_hidden(item)))
            results[place] = replace(results[place], report=report)
    return replace(execution, results=tuple(results))


def _may_have_found(result: ToolResult, item: Finding) -> bool:
    return any(one.tool == item.tool for one in result.report.findings) or (
        result.report.tool == item.tool and result.looked
    )


def _say_hidden(finding: Finding) -> Finding:
    why = finding.why
    text = Text(
        f"{why.text.en} (hidden behind other problems until they were fixed)",
        f"{why.text.zh}（被其他问题掩盖，修复它们之后才显现）",
    )
    return replace(finding, why=replace(why, text=text))
