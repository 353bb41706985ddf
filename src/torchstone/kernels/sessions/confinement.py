"""What confines a candidate on this system; what is missing is said beside every verdict."""

from __future__ import annotations

from collections.abc import Mapping

from torchstone.core.errors import UsageError
from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text
from torchstone.sandbox import cell
from torchstone.sandbox.namespaces import namespaces

NONE = "none"
_MEANS = {
    "files": Text(
        "files (Landlock, Linux 5.13 or newer)", "文件（Landlock，需 Linux 5.13 或更新）"
    ),
    "system calls": Text("system calls (seccomp)", "系统调用（seccomp）"),
    "network": Text("the network (own network namespace)", "网络（独立网络命名空间）"),
}
_REASON = Message(
    "kernel-unconfined",
    Text(
        "the candidate was not kept from {walls}: this system does not offer it",
        "候选代码未被隔离于{walls}：本系统不提供该机制",
    ),
)
_CLOSE = Text(
    "run it on Linux 5.13 or newer with Landlock, seccomp and user namespaces enabled",
    "请在启用了 Landlock、seccomp 与用户命名空间的 Linux 5.13 或更新版本上运行",
)


def walls_of(found: Mapping[str, str], network: str) -> dict[str, str]:
    """What held a candidate, by the names that reports use; from the system where none ran."""
    known = {**cell.available(), **found}
    return {
        "files": known["files"],
        "system calls": known["calls"],
        "network": network or ("own network namespace" if namespaces() else NONE),
    }


def missing_walls(walls: Mapping[str, str]) -> list[Text]:
    """Walls that nothing holds, in words."""
    return [words for name, words in _MEANS.items() if walls.get(name, NONE) == NONE]


def unconfined_gap(subject: str, walls: Mapping[str, str]) -> tuple[Gap, ...]:
    """The gap that says so; none when every wall holds."""
    missing = missing_walls(walls)
    if not missing:
        return ()
    names = {"walls": ", ".join(item.en for item in missing)}
    names_zh = "、".join(item.zh for item in missing)
    words = Text(_REASON.text.en, _REASON.text.zh.replace("{walls}", names_zh))
    return (
        Gap(
            subject, Message(_REASON.id, words, names), _CLOSE.en, tool="kernel", close_zh=_CLOSE.zh
        ),
    )


def require_confinement(allowed: bool) -> None:
    """Refuse to run what a model writes where nothing confines it, unless the user allows it."""
    missing = missing_walls(walls_of({}, ""))
    if allowed or not missing:
        return
    names = ", ".join(item.en for item in missing)
    raise UsageError(
        "kernel generate",
        f"a system that confines nothing in {names}",
        Text("Landlock, seccomp and a network namespace", "Landlock、seccomp 与网络命名空间"),
        Text(
            "run it on such a system, or pass --allow-unconfined to run a model's code all the same",
            "请在支持的系统上运行，或传入 --allow-unconfined 以照常运行模型编写的代码",
        ),
    )
