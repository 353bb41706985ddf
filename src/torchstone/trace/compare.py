"""Two runs beside each other: where they first part, and how prompts, code and verdicts differ."""

from __future__ import annotations

import difflib
from itertools import zip_longest

from torchstone._version import __version__
from torchstone.core.evidence import Diff
from torchstone.core.measure import Measure
from torchstone.core.pictures import Cell, Evidence, Table
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.trace.record import Record
from torchstone.trace.run import Run

HOW = Text("by the hashes in both journals", "依据两份日志中的哈希")
_MOST_DIFF = 400
SAME = Text("same", "相同")
OTHER = Text("differs", "不同")
ABSENT = Text("absent", "缺少")


def compare(left: Run, right: Run) -> Report:
    """What is the same and what is not, step by step; 0 differences mean equal runs."""
    rows: list[tuple[Cell, ...]] = []
    parted: list[tuple[int, Record | None, Record | None]] = []
    for number, (a, b) in enumerate(zip_longest(left.records, right.records), 1):
        cells = _compared(a, b)
        one = a or b
        assert one is not None
        rows.append(
            (one.step, one.action if a and b and a.action == b.action else _both(a, b), *cells)
        )
        if any(cell is OTHER or cell is ABSENT for cell in cells) or _both(a, b):
            parted.append((number, a, b))
    evidence: list[Evidence] = [
        Table(
            Text("Step by step", "逐步对比"),
            (
                Text("step", "步骤"), Text("action", "操作"), Text("prompt", "提示"),
                Text("answer", "回答"), Text("code", "代码"), Text("log", "日志"), Text("verdict", "结论"),
            ),
            tuple(rows),
            HOW,
        )
    ]  # fmt: skip
    if parted:
        evidence += _difference(left, right, parted[0])
    first = parted[0][0] if parted else 0
    return Report(
        tool="trace",
        subject=f"{left.folder} … {right.folder}",
        measures=(
            Measure(
                "differences", float(len(parted)), "", HOW, Text("records that differ", "不同的记录"),
                evidence=tuple(evidence), tool="trace",
            ),
            Measure(
                "first_divergence", float(first), "", HOW,
                Text("first record that differs (0: none)", "首个不同的记录（0 表示没有）"), tool="trace",
            ),
        ),
        environment={"torchstone": __version__},
    )  # fmt: skip


def _both(a: Record | None, b: Record | None) -> str:
    """Both actions where they are not the same, else nothing."""
    names = [item.action if item else "–" for item in (a, b)]
    return "" if names[0] == names[1] else " / ".join(names)


def _compared(a: Record | None, b: Record | None) -> tuple[Text, ...]:
    cells = [_same(a, b, name) for name in ("prompt", "answer", "result", "error_log")]
    if a is None or b is None:
        return (*cells, ABSENT)
    return (*cells, SAME if a.verdict == b.verdict else OTHER)


def _same(a: Record | None, b: Record | None, name: str) -> Text:
    if a is None or b is None:
        return ABSENT
    left, right = a.texts.get(name), b.texts.get(name)
    if left is None or right is None:
        return SAME if left is right else ABSENT
    return SAME if left.sha256 == right.sha256 else OTHER


def _difference(
    left: Run, right: Run, parted: tuple[int, Record | None, Record | None]
) -> list[Evidence]:
    _, a, b = parted
    if a is None or b is None:
        return []
    made: list[Evidence] = []
    for name in ("prompt", "result", "error_log"):
        texts = [run.text(record, name) or "" for run, record in ((left, a), (right, b))]
        lines = list(
            difflib.unified_diff(
                texts[0].splitlines(), texts[1].splitlines(),
                f"a/{name}", f"b/{name}", lineterm="", n=3,
            )
        )  # fmt: skip
        if lines:
            made.append(Diff("\n".join(lines[:_MOST_DIFF]) + "\n"))
    return made
