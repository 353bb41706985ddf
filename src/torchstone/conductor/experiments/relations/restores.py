"""Loading a state changes the weights that it is loaded into."""

from __future__ import annotations

from torchstone.conductor.experiments.subject import Examined, Subject
from torchstone.conductor.probes.rules import ProbeRule, Shown
from torchstone.core.finding import Severity
from torchstone.core.text import Text

NO_EFFECT = ProbeRule(
    "EX105",
    "restore-without-effect",
    Severity.HIGH,
    "wrong result",
    Text(
        "a state is loaded into the very tensors that it holds",
        "加载的状态与被加载的张量是同一块内存",
    ),
    Text(
        "`state_dict()` does not copy: what was kept as a backup has changed with every step since",
        "`state_dict()` 不会复制：作为备份保存的内容随此后的每一步一起改变",
    ),
    Text(
        "keep a copy: `copy.deepcopy(model.state_dict())`",
        "请保存副本：`copy.deepcopy(model.state_dict())`",
    ),
)
RULES = (NO_EFFECT,)


def examine(subject: Subject) -> Examined:
    places = list(dict.fromkeys(subject.run.restores))
    shown = tuple(
        Shown(
            NO_EFFECT,
            place,
            Text(
                "this load restores nothing: source and target are one memory",
                "此处加载没有任何效果：来源与目标是同一块内存",
            ),
        )
        for place in places
    )
    return Examined(shown, decided=bool(subject.run.steps))
