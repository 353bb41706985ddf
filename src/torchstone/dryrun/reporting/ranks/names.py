"""How ranks are named in a sentence."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.text import Message, Text


def ranks_text(ranks: tuple[int, ...]) -> str:
    """`0`, `1-3`, `0, 4-7`."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][-1:] = [parts[-1][-1], rank] if len(parts[-1]) == 1 else [rank]
        else:
            parts.append([rank])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def with_ranks(said: Message, ranks: tuple[int, ...], played: tuple[int, ...]) -> Message:
    """The message with the ranks that it is about at its end."""
    which = ranks_text(ranks)
    en = "all ranks" if set(ranks) == set(played) else f"rank {which}" if len(ranks) == 1 else f"ranks {which}"  # fmt: skip
    zh = "所有 rank" if set(ranks) == set(played) else f"rank {which}"
    text = Text(said.text.en + " (on {on_ranks})", said.text.zh + "（{on_ranks_zh}）")
    return replace(said, text=text, args={**said.args, "on_ranks": en, "on_ranks_zh": zh})
