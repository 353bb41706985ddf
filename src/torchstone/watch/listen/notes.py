"""What a watch tells a person at its start: what it found, and what it does not watch."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.watch.listen.discover import Found
from torchstone.watch.listen.optimizer_reader import HISTOGRAM_EVERY, OptimizerReader

Note = tuple[Text, int]
"""A sentence and its level of logging."""


def found_notes(found: Found) -> Iterator[Note]:
    """The parts of the training step by the names they were found under."""
    groups = (("model", found.models), ("optimizer", found.optimizers),
              ("scaler", found.scalers), ("scheduler", found.schedulers))  # fmt: skip
    parts = ", ".join(
        f"{kind} {name} ({type(item).__name__})" for kind, group in groups for name, item in group
    )
    if parts:
        yield Text(f"watching: {parts}", f"正在监控：{parts}"), logging.INFO
    if not found.models:
        yield (
            Text(
                "no model found, so layers are named after optimizer groups; pass model=…",
                "未找到模型，各层以优化器参数组命名；可传入 model=…",
            ),
            logging.WARNING,
        )


def unwatched_notes(reader: OptimizerReader) -> Iterator[Note]:
    """What of an optimizer is not read, or not as it should be, and why."""
    if fallback := reader.without_c:
        yield (
            Text(
                f"the C pass is not available, exponents are counted with torch every {HISTOGRAM_EVERY} steps: {fallback}",
                f"C 代码不可用，改用 torch 每 {HISTOGRAM_EVERY} 步统计一次指数：{fallback}",
            ),
            logging.INFO,
        )
    for item in reader.watched.unwatched:
        yield (
            Text(
                f"not watched: '{item.name}': {item.reason.en}",
                f"未监控：'{item.name}'：{item.reason.zh}",
            ),
            logging.INFO,
        )
    if not reader.watched.parameters:
        yield (
            Text(
                f"{reader.name} has no parameters that can be monitored",
                f"{reader.name} 没有可监控的参数",
            ),
            logging.WARNING,
        )
