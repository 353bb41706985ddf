"""Words for what happened: the same on every run, without paths, addresses or times."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchstone.core.evidence import Number
from torchstone.core.pictures import Evidence, Heatmap, Plot, Series, Table
from torchstone.core.text import Text
from torchstone.kernels.messages.facts import Told, Wrong
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.workshop import Ended

COMPARED = Text("compared with the problem in double precision", "与双精度下的问题比较")
COUNTED = Text("counted in the candidate's process", "在候选进程中统计")
UNANSWERED = Text(
    "the problem's own inputs are not answered rightly", "问题自身的输入未得到正确结果"
)
"""Why a gate has nothing to look at."""
TOO_SHORT = Text(
    "too short to time: a call takes less time than the exchange of messages around it",
    "时间过短，无法计时：单次调用被进程间通信的开销淹没",
)
REFERENCE_SHORT = Text(
    "the reference is too short to time: a call takes less time than the exchange of messages "
    "around it",
    "参考时间过短，无法计时：单次调用被进程间通信的开销淹没",
)
UNSTEADY = Text(
    "too short to time: the spread is as large as the value",
    "时间过短，无法计时：波动与数值同样大",
)
_MOST = 6


def steady(text: str) -> str:
    """A message without what changes from run to run, and without orders to a terminal."""
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    text = "".join(item if item.isprintable() else " " for item in text)
    text = re.sub(r"0x[0-9a-fA-F]+", "0x…", text)
    return re.sub(r"(/[\w.@+-]+)+/([\w.@+-]+)", r"\2", text)


def error_text(error: Told) -> str:
    """An exception as `Kind: words (line n)`."""
    parts = ": ".join(part for part in (error.kind, steady(error.text)) if part)
    return parts + (f" (line {error.line})" if error.line else "")


def ended_text(ended: Ended) -> Text:
    """How a process ended, in words."""
    reason = ended.reason
    if ended.late:
        limit = f"{ended.limit_seconds:g}"
        return Text(
            f"the call did not end within {limit} s (--timeout)",
            f"调用未在 {limit} 秒内结束（--timeout）",
        )
    if reason == "CPU time is up":
        return Text("the call used up its CPU time", "调用用尽了 CPU 时间")
    if reason.startswith("killed by"):
        name = reason.removeprefix("killed by ")
        return Text(f"the process was ended by {name}", f"进程因 {name} 结束")
    return Text(f"the process ended ({reason})", f"进程结束（{reason}）")


def call_trouble(call: Call) -> Text | None:
    """Why a call gave no answer; None when it did."""
    if call.ended is not None:
        return ended_text(call.ended)
    if call.error is not None:
        said = error_text(call.error)
        return Text(f"raises {said}", f"抛出 {said}")
    return None


def both(en: str, zh: str, /, **args: object) -> Text:
    """Two sentences with the same blanks filled."""
    values = {key: str(value) for key, value in args.items()}
    return Text(en.format(**values), zh.format(**values))


def joined(texts: Sequence[Text], most: int = _MOST) -> Text:
    """Several sentences as one; what is too much is counted."""
    shown = list(texts[:most])
    rest = len(texts) - len(shown)
    if rest:
        shown.append(Text(f"… and {rest} more", f"……另有 {rest} 项"))
    return Text("; ".join(item.en for item in shown), "；".join(item.zh for item in shown))


def number(value: float) -> str:
    """Three figures."""
    return f"{value:.3g}"


def place(index: Sequence[int]) -> str:
    """An index as it is written in Python."""
    return "[" + ", ".join(map(str, index)) + "]"


def wrong_text(call: Call) -> list[Text]:
    """What the referee found wrong with a call's values."""
    texts = [
        *unwritten_text(call),
        *(_value_text(call, fact, _PATTERN) for fact in call.wrong("pattern")),
        *(_value_text(call, fact, _PATTERN) for fact in call.wrong("whole")),
    ]
    for fact in call.wrong("error"):
        here, units, allowed = (
            number(item or 0.0) for item in (fact.here, fact.units, fact.allowed)
        )
        texts.append(_value_text(call, fact, _ERROR, here=here, units=units, allowed=allowed))
    return texts


def form_text(call: Call) -> list[Text]:
    """Outputs of another count, type, shape, dtype or layout."""
    return [
        both(
            "{name}: the answer is {got}, the reference gives {want} (* is an array or a number)",
            "{name}：结果为 {got}，参考给出 {want}（* 表示数组或数值）",
            name=call.name, got=shape_of(fault.got), want=shape_of(fault.want),
        )
        if fault.what == "count"
        else both(
            "{name}: output {output} has {what} {got}, the reference has {want}",
            "{name}：输出 {output} 的{zh}为 {got}，参考为 {want}",
            name=call.name, output=fault.output, what=fault.what,
            zh=_FORMS[fault.what], got=fault.got, want=fault.want,
        )
        for fault in call.facts.form
    ]  # fmt: skip


def shape_of(structure: object) -> str:
    """The nesting of an answer as it would be written."""
    if isinstance(structure, dict):
        inner = ", ".join(f"{key!r}: {shape_of(item)}" for key, item in structure.items())
        return f"{{{inner}}}"
    if isinstance(structure, list):
        return f"[{', '.join(map(shape_of, structure))}]"
    return str(structure)


_FORMS = {"count": "数量", "type": "类型", "shape": "形状", "dtype": "数据类型", "stride": "步长"}


def unwritten_text(call: Call) -> list[Text]:
    """Elements that hold what the memory held before the call."""
    return [
        both(
            "{name}: never written: {first} to {last} ({count} of {of} elements)",
            "{name}：从未写入：{first} 至 {last}（{of} 个元素中有 {count} 个）",
            name=named(call, fact), first=place(fact.index), last=place(fact.last),
            count=fact.count, of=fact.of,
        )
        for fact in call.wrong("unwritten")
    ]  # fmt: skip


_PATTERN = Text(
    "{name}: got {got} at {at}, expected {want} ({count} of {of} elements are wrong)",
    "{name}：{at} 处得到 {got}，应为 {want}（{of} 个元素中有 {count} 个错误）",
)
_ERROR = Text(
    "{name}: got {got} at {at}, expected {want}; error {here} roundings, tolerance {allowed}; "
    "{count} of {of} elements are wrong, the largest error is {units} roundings",
    "{name}：{at} 处得到 {got}，应为 {want}；误差为舍入的 {here} 倍，容差 {allowed} 倍；"
    "{of} 个元素中有 {count} 个错误，最大误差为舍入的 {units} 倍",
)


def _value_text(call: Call, fact: Wrong, text: Text, **more: object) -> Text:
    got, want = told_apart(float(fact.got), float(fact.want))
    return both(text.en, text.zh, name=named(call, fact), at=place(fact.index), got=got, want=want,
                count=fact.count, of=fact.of, **more)  # fmt: skip


def named(call: Call, fact: Wrong) -> str:
    """A call, and which of its outputs is meant where it has several."""
    return call.name if fact.output < 0 else f"{call.name} output {fact.output}"


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with as few digits as show that they differ."""
    for digits in range(3, 18):
        shown = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown


def pictures(calls: Sequence[Call]) -> tuple[Evidence, ...]:
    """Numbers and pictures of the worst wrong answer."""
    errors = [(fact, call) for call in calls for fact in call.wrong("error")]
    if not errors:
        return tuple(_map(fact.map, call) for call in calls for fact in call.wrong("whole"))[:1]
    fact, call = max(errors, key=lambda item: item[0].units or 0.0)
    found: list[Evidence] = [
        Number(Text("largest error", "最大误差"), fact.units or 0.0, "roundings", COMPARED),
        Number(Text("tolerance", "容差"), fact.allowed or 0.0, "roundings",
               Text("from the length of the sums, the reference's own error and the cost of ten bits",
                    "由求和长度、参考自身误差与十位尾数的代价得出")),
    ]  # fmt: skip
    rows = fact.histogram
    if len(rows) > 1:
        curve = Series(Text("elements", "元素"), tuple(row[0] for row in rows),
                       tuple(row[1] for row in rows), "", COMPARED,
                       "log10 of the error in roundings")  # fmt: skip
        found.append(Plot(Text("Elements by their error", "按误差统计的元素"), (curve,),
                          "log10 of the error in roundings", "elements", bars=True))  # fmt: skip
    found.append(_map(fact.map, call))
    return tuple(found)


def _map(values: list[list[float]], call: Call) -> Heatmap:
    rows = tuple(str(i) for i in range(len(values)))
    columns = tuple(str(i) for i in range(len(values[0])))
    return Heatmap(
        both("Where the answer is wrong: {name}", "答案错误的位置：{name}", name=call.name),
        rows, columns, tuple(tuple(row) for row in values), "share of elements", COMPARED,
    )  # fmt: skip


def call_table(calls: Sequence[Call], title: Text) -> Table:
    """Calls with what became of them."""
    rows = []
    for call in calls[:24]:
        trouble = call_trouble(call)
        wrong = wrong_text(call)
        said = trouble or (joined(wrong, 1) if wrong else Text("right", "正确"))
        rows.append((call.family, call.case.seed, call.shapes, said))
    columns = (Text("family", "类别"), Text("seed", "种子"), Text("shapes", "形状"),
               Text("what happened", "结果"))  # fmt: skip
    return Table(title, columns, tuple(rows), COMPARED)
