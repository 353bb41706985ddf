"""What a trace leaves out, why, and what would change it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchstone.core.text import Text
from torchstone.dataflow.tracing.recorder import Recorder

_PLACES = 3
"""Lines that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Note(Text):
    """One sentence, and what to do about it."""

    remedy: str = ""


def notes_on(recorder: Recorder, skipped: Mapping[str, str]) -> Iterator[Note]:
    """What this recorder did not record."""
    if recorder.overflowed:
        most = recorder.max_events
        yield Note(
            f"recording stopped after {most:,} events; pass max_events for more",
            f"记录在 {most:,} 个事件后停止；可用 max_events 调大",
            f"--max-events {10 * most}",
        )
    if recorder.cuts:
        calls, depth = recorder.cuts.total(), recorder.deepest
        places = _places(recorder, recorder.cuts)
        yield Note(
            f"{calls:,} calls deeper than {depth} inside each other are part of the call around them: {places}",
            f"嵌套超过 {depth} 层的 {calls:,} 次调用计入其外层调用：{places}",
            f"--max-depth {2 * depth}",
        )
    if recorder.hot:
        places = _places(recorder, recorder.hot)
        yield Note(
            f"{len(recorder.hot)} places with very short calls are sampled after their first rounds, calls and "
            f"data there are not recorded one by one: {places}",
            f"{len(recorder.hot)} 处极短的调用在最初若干轮之后改为采样，不再逐次记录其调用与数据：{places}",
            "",
        )
    for name, reason in {**skipped, **recorder.troubles}.items():
        yield Note(
            f"{name} is not traced: {reason}",
            f"{name} 未被追踪：{reason}",
            "put these statements into a function of a file, and call it inside the traced block",
        )


def _places(recorder: Recorder, counts: Mapping[int, int]) -> str:
    sites = [recorder.sites[number] for number in counts]
    lines = list(dict.fromkeys(f"{os.path.basename(site.file)}:{site.line}" for site in sites))
    more = len(lines) - _PLACES
    return ", ".join(lines[:_PLACES]) + (f", … (+{more})" if more > 0 else "")
