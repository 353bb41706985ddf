"""The answer to a candidate in a language that cannot be run here: what is missing, in one sentence."""

from __future__ import annotations

from torchstone.core.answer import Answer
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.kernels.candidate import ELSEWHERE, JUDGED_ELSEWHERE


def report_elsewhere(name: str, language: str) -> Report:
    """Nothing was judged, and that is no verdict on the candidate."""
    what = ELSEWHERE[language]
    gap = Gap(
        name, Message("kernel-language", what), JUDGED_ELSEWHERE.en, failed=True, tool="kernel",
        close_zh=JUDGED_ELSEWHERE.zh,
    )  # fmt: skip
    headline = Text(f"Not verified: {what.en}", f"未验证：{what.zh}")
    return Report(
        tool="kernel", gaps=(gap,), subject=f"{name} ({language})",
        answer=Answer(headline=headline, state="plain"),
    )  # fmt: skip
