"""State that grows by small updates is kept in float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

RULE = ProbeRule(
    "PR116", "state-updated-in-half", Severity.MEDIUM, "wrong result",
    Text("state in half precision is updated in place", "半精度状态被就地更新"),
    Text("an update smaller than half a unit in the last place changes nothing: averages and sums stand still",
         "小于半个末位单位的更新不起作用：平均值与累加和会停滞"),
    Text("keep averages and running sums in float32", "平均值与累加和应保持 float32"),
)  # fmt: skip

_SEEN = 0.005  # a smaller share would be shown as 0%
_STAND_STILL = Text(
    "this state is made in half precision and updated in place at {path}:{line}: {share} of its values do not change",
    "此处以半精度创建的状态在 {path}:{line} 就地更新：{share} 的数值没有变化",
)
_GROWS = Text(
    "this state is made in half precision and updated in place at {path}:{line}: updates smaller than half a unit "
    "in the last place will be lost as it grows",
    "此处以半精度创建的状态在 {path}:{line} 就地更新：数值变大后，小于半个末位单位的更新会丢失",
)


def check(run: Recording) -> Iterator[Shown]:
    by_origin: dict[Place, list[tuple[Place, float]]] = {}
    for update, made, same, _ in run.absorbed:
        if made and made != update:
            by_origin.setdefault(made, []).append((update, same))
    for made, updates in by_origin.items():
        place = updates[0][0]
        share = sum(same for _, same in updates) / len(updates)
        yield Shown(
            RULE, made,
            _STAND_STILL if share >= _SEEN else _GROWS,
            {"path": place.path, "line": str(place.line), "share": f"{share:.0%}"},
            (number("updates seen", "更新次数", len(updates), "", IN_THE_RUN),
             number("values that stay", "未变化的数值", 100 * share, "%", IN_THE_RUN)),
            offered(run.root, made, _widen),
        )  # fmt: skip


def _widen(file: SourceFile, place: Place) -> Iterator[Fix]:
    for node in file.nodes(place.line, ast.expr):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "half"
        ):
            yield fix([file.replace(node, f"{file.source(node.func.value)}.float()")],
                      "keep the state in float32", "以 float32 保存状态")  # fmt: skip
        elif isinstance(node, ast.Attribute) and node.attr in ("float16", "half", "bfloat16"):
            yield fix(
                [file.replace(node, "torch.float32")],
                "keep the state in float32",
                "以 float32 保存状态",
            )
