"""The first screen of a verdict: accepted or refused, why, the first wrong element, the gates."""

from __future__ import annotations

from torchstone.core.answer import Answer, Fact, State, Tile
from torchstone.core.evidence import Number
from torchstone.core.pictures import Check, Strip
from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.kernels.gate import all_gates
from torchstone.kernels.verdicts.verdict import GateResult, Verdict

_STATES: dict[str, State] = {
    "passed": "good",
    "failed": "bad",
    "gap": "warning",
    "skipped": "plain",
}


def verdict_answer(verdict: Verdict) -> Answer:
    """What a person wants to know of a kernel."""
    failed = verdict.failed
    return Answer(
        headline=_headline(verdict),
        state="good" if verdict.accepted else "bad",
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
        speed = _speed(verdict)
        faster = Text(f", {speed:.2f} x the reference's speed", f"，速度为参考的 {speed:.2f} 倍") if speed else Text("", "")  # fmt: skip
        return Text(
            f"Accepted: all {passed} gates passed{faster.en}",
            f"接受：{passed} 项检查全部通过{faster.zh}",
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
    return Text(
        detail.en.partition("; own seed")[0][:200], detail.zh.partition("；own seed")[0][:200]
    )


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
    if first.error_ulp is not None:
        limit = f"{first.tolerance_ulp:.3g} ULP" if first.tolerance_ulp is not None else "–"
        tiles.append(Tile(Text("error", "误差"), f"{first.error_ulp:.3g} ULP",
                          Text(f"tolerance {limit}", f"容差 {limit}"), "bad"))  # fmt: skip
    return tuple(tiles)


def _numbers(verdict: Verdict) -> dict[str, Number]:
    timing = next((item for item in verdict.results if item.gate == "timing"), None)
    facts = timing.evidence if timing is not None and timing.status == "passed" else ()
    return {
        str(getattr(item.name, "en", item.name)): item for item in facts if isinstance(item, Number)
    }


def _speed(verdict: Verdict) -> float:
    found = _numbers(verdict).get("speed-up")
    return found.value if found else 0.0


def _time_tiles(verdict: Verdict) -> tuple[Tile, ...]:
    found = _numbers(verdict)
    if not {"candidate", "reference", "speed-up"} <= found.keys():
        return ()
    ours, theirs, speed = (found[name] for name in ("candidate", "reference", "speed-up"))
    spread = f"± {human(ours.spread, 's')}" if ours.spread is not None else ""
    return (
        Tile(Text("time of a call", "单次调用时间"), human(ours.value, "s"), spread),
        Tile(Text("reference", "参考实现"), human(theirs.value, "s")),
        Tile(Text("speed-up", "加速比"), f"{speed.value:.2f} x", Text("on this machine", "本机"),
             "good" if speed.value > 1 else "plain"),
    )  # fmt: skip


def _gates(verdict: Verdict) -> Strip:
    titles = {gate.name: gate.title for gate in all_gates()}
    checks = tuple(
        Check(item.gate, _STATES[item.status], _note(item, titles[item.gate]))
        for item in verdict.results
    )
    return Strip(Text("Gates", "检查项"), checks)


def _note(item: GateResult, title: Text) -> Text:
    if not item.detail.en:
        return title
    return Text(f"{title.en}: {item.detail.en}"[:400], f"{title.zh}：{item.detail.zh}"[:400])


def _reason(item: GateResult) -> Text:
    gate = next(gate for gate in all_gates() if gate.name == item.gate)
    remedy = item.remedy if item.remedy.en else gate.remedy
    why = item.why if item.why.en else gate.why
    return Text(
        f"{item.gate}: {why.en} To do: {remedy.en}",
        f"{item.gate}：{why.zh}建议：{remedy.zh}",
    )
