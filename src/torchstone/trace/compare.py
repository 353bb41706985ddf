"""Two runs beside each other: where they first part, and how prompts, code and verdicts differ."""

from __future__ import annotations

import difflib
from itertools import zip_longest

from torchstone._version import __version__
from torchstone.core.answer import Answer, Fact
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
_CODE = Text("code", "代码")
_COMPARED = (
    Text("prompt", "提示"), Text("answer", "回答"), _CODE, Text("log", "日志"),
    Text("verdict", "结论"),
)  # fmt: skip
_MOST_LINES = 8


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
                Text("step", "步骤"), Text("action", "操作"), *_COMPARED,
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
        answer=_answer(left, right, parted),
    )  # fmt: skip


def _answer(
    left: Run, right: Run, parted: list[tuple[int, Record | None, Record | None]]
) -> Answer:
    """Whether they are the same, and where they part."""
    count = max(len(left.records), len(right.records))
    about = (Fact(Text("first", "第一个"), str(left.folder)),
             Fact(Text("second", "第二个"), str(right.folder)))  # fmt: skip
    if not parted:
        same = Text(f"The runs are the same: {count} records", f"两次运行相同：{count} 条记录")
        return Answer(same, "good", about)
    lines = [_parted(a, b) for _, a, b in parted[:_MOST_LINES]]
    if len(parted) > _MOST_LINES:
        rest = len(parted) - _MOST_LINES
        lines.append(Text(f"… and {rest} more", f"……另有 {rest} 条"))
    one = parted[0][1] or parted[0][2]
    assert one is not None
    headline = Text(
        f"{len(parted)} of {count} records differ, the first at step {one.step} ({one.action})",
        f"{count} 条记录中有 {len(parted)} 条不同，首个在第 {one.step} 步（{one.action}）",
    )
    return Answer(headline, "warning", about, lines=tuple(lines))


def _parted(a: Record | None, b: Record | None) -> Text:
    """What is not the same at one step."""
    one = a or b
    assert one is not None
    if a is None or b is None:
        run = (
            Text("the second run", "第二个运行")
            if b is None
            else Text("the first run", "第一个运行")
        )
        return Text(f"step {one.step} {one.action}: absent in {run.en}",
                    f"第 {one.step} 步 {one.action}：{run.zh}中没有")  # fmt: skip
    if both := _both(a, b):
        return Text(f"step {one.step}: {both}", f"第 {one.step} 步：{both}")
    cells = zip(_COMPARED, _compared(a, b), strict=True)
    names = [name for name, cell in cells if cell is not SAME]
    if one.role == "verifier":  # what it gave is its verdict
        names = [name for name in names if name is not _CODE]
    return Text(
        f"step {one.step} {one.action}: {', '.join(name.en for name in names)}",
        f"第 {one.step} 步 {one.action}：{'、'.join(name.zh for name in names)}",
    )


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
