"""The first screen of two runs: do they agree, where do they part first, and by how much."""

from __future__ import annotations

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.evidence import State
from torchstone.core.finding import Finding
from torchstone.core.pictures import Evidence
from torchstone.core.text import Text
from torchstone.tensors.compare.results.precision_answer import percent
from torchstone.tensors.compare.results.runs_outcome import RunsReport


def runs_answer(
    found: RunsReport, finding: Finding | None, pictures: tuple[Evidence, ...], topic: str
) -> Answer:
    """One sentence on the first divergence, or that there is none."""
    lines: tuple[Text, ...] = ()
    if finding is not None:
        lines = tuple(Text(m.say("en"), m.say("zh")) for m in (finding.why, finding.remedy))
    elif not found.agrees:
        lines = (_no_single_layer(found),)
    return Answer(
        headline=_headline(found, finding),
        state="good" if found.agrees else "bad",
        about=(
            Fact(Text("models", "模型"), f"{found.model_a} / {found.model_b}"),
            Fact(Text("tolerance", "容差"), percent(found.tolerance)),
        ),
        warnings=tuple(_warnings(found)),
        tiles=tuple(_tiles(found)),
        lines=lines,
        pictures=pictures,
        next=() if found.agrees else (f"torchstone explain {topic}",),
    )


def _headline(found: RunsReport, finding: Finding | None) -> Text:
    if finding is not None:
        return Text(finding.message("en"), finding.message("zh"))
    error = percent(found.output_error)
    if found.agrees:
        return Text(
            f"The runs agree: outputs differ by {error}, and no layer diverges",
            f"两次运行一致：输出相差 {error}，没有层出现分歧",
        )
    return Text(
        f"The outputs differ by {error}, and no single layer is where it begins",
        f"输出相差 {error}，但不是从某一层开始的",
    )


def _no_single_layer(found: RunsReport) -> Text:
    if not found.layers:
        return Text(
            "no layer has the same name in both models, so only the outputs were compared",
            "两个模型中没有同名的层，因此只比较了输出",
        )
    worst = max(found.layers, key=lambda row: row.leaving)
    name = worst.name or "(model)"
    return Text(
        f"the difference grows little by little, or arises outside layers; it is largest after `{name}` "
        f"({percent(worst.leaving)})",
        f"差异逐渐累积，或产生于各层之外；在 `{name}` 之后最大（{percent(worst.leaving)}）",
    )


def _warnings(found: RunsReport) -> list[Text]:
    said = []
    for names, model, where in ((found.only_in_a, found.model_a, "a"), (found.only_in_b, found.model_b, "b")):  # fmt: skip
        if names:
            count = len(names)
            said.append(
                Text(
                    f"{count} modules are only in model_{where} ({model}) and were not compared",
                    f"{count} 个模块仅存在于 model_{where}（{model}），未作比较",
                )
            )
    return said


def _tiles(found: RunsReport) -> list[Tile]:
    bad: State = "plain" if found.agrees else "bad"
    tiles = [Tile(Text("output difference", "输出差异"), percent(found.output_error), state=bad)]
    if found.gradients:
        name, worst = max(found.gradients.items(), key=lambda item: item[1])
        note = Text(f"largest, of `{name}`", f"最大者：`{name}`")
        tiles.append(Tile(Text("gradient difference", "梯度差异"), percent(worst), note))
    tiles.append(Tile(Text("layers compared", "已比较的层"), f"{len(found.layers):,}"))
    differ = len(found.weights)
    tiles.append(
        Tile(Text("weights that differ", "不同的权重"), f"{differ:,}", state="warning" if differ else "plain")
    )  # fmt: skip
    return tiles
