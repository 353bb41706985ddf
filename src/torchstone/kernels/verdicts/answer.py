"""The first screen of a verdict: accepted or refused, why, the first wrong element, the gates."""

from __future__ import annotations

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.evidence import Number, State
from torchstone.core.pictures import Check, Strip
from torchstone.core.quantity import human
from torchstone.core.text import NOTHING, Text, shortened_both
from torchstone.kernels.gate import all_gates
from torchstone.kernels.gate_result import OWN_SIZE, GateResult
from torchstone.kernels.verdicts.verdict import Verdict

_STATES: dict[str, State] = {
    "passed": "good",
    "failed": "bad",
    "gap": "warning",
    "skipped": "plain",
    "undecided": "plain",
}
_OUTCOMES: dict[str, State] = {
    "accepted": "good",
    "rejected": "bad",
    "smaller": "warning",
    "none": "plain",
}
_UNTIMED = Text("too short to time", "时间过短，无法计时")


def verdict_answer(verdict: Verdict) -> Answer:
    """What a person wants to know of a kernel."""
    failed = verdict.failed
    return Answer(
        headline=_headline(verdict),
        state=_OUTCOMES[verdict.outcome],
        about=(
            Fact(Text("problem", "问题"), verdict.problem.name),
            Fact(Text("written in", "实现"), verdict.candidate.implementation),
        ),
        tiles=(*_wrong_tiles(verdict), *_time_tiles(verdict)),
        pictures=(_gates(verdict),),
        lines=tuple(_reason(item) for item in failed),
        next=("torchstone kernel verify --help",) if not verdict.results else (),
    )


def _headline(verdict: Verdict) -> Text:
    titles = {gate.name: gate.title for gate in all_gates()}
    passed = sum(1 for item in verdict.results if item.status == "passed")
    if verdict.crash:
        return Text("No verdict: the verification itself failed", "没有结论：验证过程本身失败")
    if verdict.accepted:
        faster = _speed(verdict)
        open_left = sum(1 for item in verdict.results if item.status in ("undecided", "gap"))
        left = Text(f", {open_left} not decided", f"，{open_left} 项未定") if open_left else NOTHING
        return Text(
            f"Accepted: {passed} gates passed{left.en}{faster.en}",
            f"接受：{passed} 项检查通过{left.zh}{faster.zh}",
        )
    if verdict.outcome == "smaller":
        own = next(item for item in verdict.results if item.gate == OWN_SIZE)
        return Text(
            f"Right at smaller sizes, not run at its own: {own.detail.en}",
            f"在较小尺寸下正确，未在自身尺寸下运行：{own.detail.zh}",
        )
    if verdict.failed:
        first = verdict.failed[0]
        detail = _brief(first.detail)
        title = titles[first.gate]
        return Text(f"Refused – {title.en}: {detail.en}", f"未通过——{title.zh}：{detail.zh}")
    stopped = next((item for item in verdict.results if item.status == "gap"), None)
    why = stopped.detail if stopped else Text("", "")
    return Text(f"Not verified: {why.en}", f"未验证：{why.zh}")


def _brief(detail: Text) -> Text:
    """The first of several sentences: the others stand in the details."""
    first = Text(detail.en.partition("; own seed")[0], detail.zh.partition("；own seed")[0])
    return shortened_both(first, 200)


def _wrong_tiles(verdict: Verdict) -> tuple[Tile, ...]:
    first = verdict.first_wrong
    if first is None or verdict.accepted:
        return ()
    tiles = [
        Tile(Text("first wrong element", "首个错误元素"), first.index, first.case),
        Tile(Text("expected", "应为"), first.expected),
        Tile(Text("got", "得到"), first.got,
             Text(f"{first.wrong} of {first.elements} elements are wrong",
                  f"{first.elements} 个元素中 {first.wrong} 个错误"), "bad"),
    ]  # fmt: skip
    if first.error is not None:
        limit = f"{first.tolerance:.3g}" if first.tolerance is not None else "–"
        tiles.append(Tile(Text("error", "误差"), Text(f"{first.error:.3g} roundings", f"舍入的 {first.error:.3g} 倍"),
                          Text(f"tolerance {limit}", f"容差 {limit}"), "bad"))  # fmt: skip
    return tuple(tiles)


def _timed(verdict: Verdict) -> GateResult | None:
    """What the clock said, where it ran."""
    found = next((item for item in verdict.results if item.gate == "timing"), None)
    return found if found is not None and found.status == "passed" else None


def _numbers(timing: GateResult) -> dict[str, Number]:
    return {
        str(getattr(item.name, "en", item.name)): item
        for item in timing.evidence
        if isinstance(item, Number)
    }


def _speed(verdict: Verdict) -> Text:
    """The speed in a headline: a ratio only where it is more than noise."""
    timing = _timed(verdict)
    if timing is None:
        return NOTHING
    found = _numbers(timing).get("speed-up")
    if found is None:
        short = _untimed(timing)[0]
        return Text(f", {short.en}", f"，{short.zh}")
    return Text(
        f", {found.value:.2f} x the reference's speed", f"，速度为参考的 {found.value:.2f} 倍"
    )


def _untimed(timing: GateResult) -> tuple[Text, Text]:
    """What was too short to time, and the reason."""
    en, zh = timing.detail.en.partition(": "), timing.detail.zh.partition("：")
    return Text(en[0], zh[0]), Text(en[2], zh[2])


def _time_tiles(verdict: Verdict) -> tuple[Tile, ...]:
    timing = _timed(verdict)
    if timing is None:
        return ()
    found = _numbers(timing)
    return (
        _time_tile(Text("time of a call", "单次调用时间"), found.get("candidate")),
        _time_tile(Text("reference", "参考实现"), found.get("reference")),
        _speed_tile(timing, found.get("speed-up")),
    )


def _time_tile(label: Text, found: Number | None) -> Tile:
    if found is None:
        return Tile(label, _UNTIMED)
    spread = f"± {human(found.spread, 's')}" if found.spread is not None else ""
    return Tile(label, human(found.value, "s"), spread)


def _speed_tile(timing: GateResult, found: Number | None) -> Tile:
    label = Text("speed-up", "加速比")
    if found is None:
        return Tile(label, *_untimed(timing))
    spread = found.spread or 0.0
    note = Text(f"± {spread:.2f}, on this machine", f"± {spread:.2f}，本机")
    return Tile(
        label, f"{found.value:.2f} x", note, "good" if found.value - spread > 1 else "plain"
    )


def _gates(verdict: Verdict) -> Strip:
    titles = {gate.name: gate.title for gate in all_gates()}
    checks = tuple(
        Check(item.gate, _state(item), _note(item, titles[item.gate])) for item in verdict.results
    )
    return Strip(Text("Gates", "检查项"), checks)


def _state(item: GateResult) -> State:
    """What was too short to time is no good news."""
    if item.gate == "timing" and item.status == "passed" and "speed-up" not in _numbers(item):
        return "plain"
    return _STATES[item.status]


def _note(item: GateResult, title: Text) -> Text:
    if not item.detail.en:
        return title
    said = Text(f"{title.en}: {item.detail.en}", f"{title.zh}：{item.detail.zh}")
    return shortened_both(said, 400)


def _reason(item: GateResult) -> Text:
    gate = next(gate for gate in all_gates() if gate.name == item.gate)
    remedy = item.remedy if item.remedy.en else gate.remedy
    why = item.why if item.why.en else gate.why
    return Text(
        f"{item.gate}: {why.en} To do: {remedy.en}",
        f"{item.gate}：{why.zh}建议：{remedy.zh}",
    )
