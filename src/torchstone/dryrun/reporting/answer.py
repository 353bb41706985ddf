"""The first screen of a dry run: runs or breaks, where, the fix that worked; the ranks as lanes."""

from __future__ import annotations

from torchstone.core import pictures
from torchstone.core.answer import Answer, Tile
from torchstone.core.evidence import Diff, Snippet
from torchstone.core.finding import Severity
from torchstone.core.pictures import Evidence, Mark, Series, Table, Wait
from torchstone.core.quantity import human
from torchstone.core.report import Report
from torchstone.core.text import Text, words
from torchstone.dryrun import rules
from torchstone.dryrun.ranks_record import Lane, RankFault, RanksRecord
from torchstone.dryrun.reporting.progress import NOT_REACHED, OPERATORS
from torchstone.dryrun.reporting.side_effects import SIDE_EFFECTS
from torchstone.render.order import worst_first

_LANES, _BEFORE, _AFTER = 12, 8, 4
"""Classes of ranks in the picture, and operations before and after the place where they part."""
_SHOWN = (
    "annotated_functions",
    "optimizer_steps",
    "covered",
    "graphs",
    "ranks",
    "matched",
    "peak_memory_bytes",
    "communication_bytes",
    *SIDE_EFFECTS,
)
"""Figures that become tiles, in this order."""
ENDINGS = {
    "end": Text("ended", "正常结束"),
    "budget": Text("enough steps", "步数已够"),
    "time": Text("time limit", "到达时限"),
    "exit": Text("sys.exit", "sys.exit"),
    "error": Text("error", "出错"),
    "blocked": Text("waits", "等待中"),
    "died": Text("gone", "进程消失"),
}
"""How the program of a class of ranks ended, beside its lane."""
_RUNS_OF_RANKS = 4
_ASSUMED = "assumptions"
_RUNS = frozenset(
    rule.id
    for rule in (
        rules.BROADCAST,
        rules.ANNOTATION,
        rules.KINDS,
        rules.CUT,
        rules.LEAK,
        rules.UNTRAINED,
        rules.DRIFT,
        rules.REPLICAS,
        rules.RACE,
        rules.WRONG_GROUP,
    )
)
"""Findings of programs that run to their end: wrong, but without an error."""


def script_answer(report: Report) -> Answer:
    """Of a script or a model that ran in one process; the annotations that were asked for come first."""
    diffs = [one for item in report.measures for one in item.evidence if isinstance(one, Diff)]
    return _answer(report, tuple(diffs))


def ranks_answer(report: Report, ranks: RanksRecord) -> Answer:
    """Of a job whose ranks were played."""
    fault = ranks.faults[0] if ranks.faults else None
    picture = _lanes(ranks.lanes, fault)
    return _answer(report, (picture,) if picture else ())


def _answer(report: Report, more: tuple[Evidence, ...]) -> Answer:
    worst = worst_first(report.findings)
    first = worst[0] if worst else None
    failed = any(gap.failed for gap in report.gaps)
    if first is not None:
        breaks = first.severity is Severity.HIGH and first.rule not in _RUNS
        head = (
            Text("Breaks at", "出错于")
            if breaks
            else Text("Runs, but look at", "可以运行，但请检查")
        )
        place = str(first.location)
        headline = Text(f"{head.en} {place}: {first.message('en')}", f"{head.zh} {place}：{first.message('zh')}")  # fmt: skip
        state = "bad" if first.severity is Severity.HIGH else "warning"
    elif failed:
        headline = Text("Stopped before it could be judged", "在得出结论之前停止")
        state = "warning"
    elif not _operators(report):
        headline = Text(
            "Nothing was looked at: no operator of torch was run",
            "未检查任何内容：没有运行 torch 算子",
        )
        state = "warning"
    elif unreached := _unreached(report):
        headline, state = unreached, "warning"
    else:
        headline = Text("Runs: nothing is refused", "可以运行：没有调用被拒绝")
        state = "good"
    lines = [first.why, first.remedy] if first is not None else []
    source = [item for item in first.evidence if isinstance(item, Snippet)] if first else []
    return Answer(
        headline=headline,
        state=state,  # type: ignore[arg-type]
        tiles=tuple(_tiles(report)),
        lines=tuple(Text(item.say("en"), item.say("zh")) for item in lines if item),
        pictures=(*more, *source[:2], *_memory_curve(report)),
        assumptions=_assumptions(report),
    )


def _operators(report: Report) -> int:
    """How many the program ran; of played ranks, where they are not counted, more than none."""
    steps = next((item for item in report.measures if item.name == "optimizer_steps"), None)
    tables = [item for item in steps.evidence if isinstance(item, Table)] if steps else []
    counts = [row[1] for table in tables for row in table.rows if row[0] == OPERATORS]
    return int(counts[0]) if counts and isinstance(counts[0], int) else 1


def _unreached(report: Report) -> Text | None:
    """What the program has and did not come to before it was stopped."""
    found = next((item for item in report.measures if item.name == NOT_REACHED), None)
    if found is None or not isinstance(found.how, Text):
        return None
    steps = next((item for item in report.measures if item.name == "optimizer_steps"), None)
    count = int(steps.value) if steps is not None else 0
    return Text(
        f"Ran as far as {count} optimizer steps; not reached: {found.how.en}",
        f"运行到第 {count} 个优化步；尚未到达：{found.how.zh}",
    )


def _memory_curve(report: Report) -> list[Evidence]:
    """Bytes alive over the run, where memory was followed."""
    found = (item for item in report.measures if item.name == "peak_memory_bytes")
    return [one for item in found for one in item.evidence if isinstance(one, Series)]


def _tiles(report: Report) -> list[Tile]:
    known = {item.name: item for item in report.measures}
    return [
        Tile(item.label, human(item.value, item.unit), item.how)
        for name in _SHOWN
        if (item := known.get(name)) is not None
    ]


def _assumptions(report: Report) -> tuple[Text, ...]:
    """What was answered in place of values that a dry run does not have."""
    found: list[Text] = []
    for item in report.measures:
        if item.name != _ASSUMED:
            continue
        for one in item.evidence:
            if isinstance(one, pictures.Table):
                for row in one.rows:
                    en, zh = (" · ".join(_cell(cell, lang) for cell in row if cell not in (None, "")) for lang in ("en", "zh"))  # fmt: skip
                    found.append(Text(en, zh))
    return tuple(found)


def _cell(cell: pictures.Cell, lang: str) -> str:
    return words(cell, lang) if isinstance(cell, Text) else str(cell)


def _lanes(lanes: tuple[Lane, ...], fault: RankFault | None) -> pictures.Lanes | None:
    """A row for each class of ranks around the place where they part; the last operations where
    they agree to the end."""
    if not lanes:
        return None
    part = common_prefix(lanes)
    start = max(0, part - _BEFORE)
    shown = lanes[:_LANES]
    drawn = []
    for lane in shown:
        marks = tuple(
            Mark(index - start, mark.op, "bad" if _is_bad(lanes, lane, index, part, fault) else "plain",
                 str(mark.place), mark.op)
            for index, mark in enumerate(lane.marks[: part + _AFTER]) if index >= start
        )  # fmt: skip
        name = name_ranks(lane.ranks)
        end = ENDINGS.get(lane.ending, Text(lane.ending, lane.ending))
        drawn.append(
            pictures.Lane(Text(f"rank {name} ({end.en})", f"rank {name}（{end.zh}）"), marks)
        )
    title = Text("What each class of ranks communicates, in order", "各类 rank 依次进行的通信")
    return pictures.Lanes(title, tuple(drawn), tuple(_waits(shown, fault)))


def _is_bad(
    lanes: tuple[Lane, ...], lane: Lane, index: int, part: int, fault: RankFault | None
) -> bool:
    """Where the classes part, and what the ranks of a deadlock wait in."""
    waits = fault is not None and bool(fault.waits) and lane.ending == "blocked"
    return (index == part and _parts(lanes, part)) or (waits and index == lane.total - 1)


def _waits(lanes: tuple[Lane, ...], fault: RankFault | None) -> list[Wait]:
    if fault is None:
        return []
    home = {rank: number for number, lane in enumerate(lanes) for rank in lane.ranks}
    found: dict[tuple[int, int], Wait] = {}
    for wait in fault.waits:
        for other in wait.waits_for:
            pair = (home.get(wait.rank, -1), home.get(other, -1))
            if min(pair) >= 0 and pair[0] != pair[1]:
                found.setdefault(pair, Wait(*pair, wait.text))
    return list(found.values())


def common_prefix(lanes: tuple[Lane, ...]) -> int:
    """How many operations all classes of ranks do alike."""
    shortest = min((len(lane.marks) for lane in lanes), default=0)
    for index in range(shortest):
        if len({(lane.marks[index].op, lane.marks[index].place) for lane in lanes}) > 1:
            return index
    return shortest


def _parts(lanes: tuple[Lane, ...], place: int) -> bool:
    return any(len(lane.marks) > place for lane in lanes) and len(lanes) > 1


def name_ranks(ranks: tuple[int, ...]) -> str:
    """Runs of ranks as ranges: {0, 2} is not 0–2."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    names = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    more = ["…"] if len(names) > _RUNS_OF_RANKS else []
    return ", ".join(names[:_RUNS_OF_RANKS] + more) or "–"
