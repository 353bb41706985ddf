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
MOVED = ProbeRule(
    "EX126",
    "state-saved-after-it-moved",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "a state that was kept is saved after the weights behind it have moved on",
        "保留的状态在其所指的权重继续变化之后才被保存",
    ),
    Text(
        "`state_dict()` does not copy: what is saved are the weights of now, not those that were kept",
        "`state_dict()` 不会复制：保存的是当前权重，而不是当时保留的权重",
    ),
    Text(
        "keep a copy: `copy.deepcopy(model.state_dict())`",
        "请保存副本：`copy.deepcopy(model.state_dict())`",
    ),
)
RULES = (NO_EFFECT, MOVED)


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
    moved = {item.taken: item for item in subject.run.moved_states}
    shown += tuple(
        Shown(
            MOVED,
            place,
            Text(
                "this state is saved at {saved}, {steps} optimizer steps after it was taken: it refers to the weights that "
                "were trained meanwhile",
                "该状态在取出 {steps} 个优化步之后才于 {saved} 保存：它指向期间继续训练的权重",
            ),
            {"saved": str(item.saved), "steps": str(item.steps)},
        )
        for place, item in moved.items()
    )
    held = [NO_EFFECT.id] if subject.run.steps and not places else []
    held += [MOVED.id] if subject.run.saved_states and not moved else []
    return Examined(shown, bool(subject.run.steps), tuple(held))
