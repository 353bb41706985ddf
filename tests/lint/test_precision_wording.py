"""The lines that users of the first requirements document know, word for word."""

from __future__ import annotations

from torchstone.core.report import Report
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

MODEL = """\
import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def forward(self, x, y):
        x = self.body(x).{cast}()
        return F.binary_cross_entropy(x, y)
"""


def run(source: str, confidence: str = "likely") -> Report:
    options = CheckOptions(
        paths=("-",), select=("TS101", "TS102"), no_cache=True, stdin_name="model.py",
        min_confidence=confidence,
    )  # fmt: skip
    return check(options, stdin=source.encode())


def spoken(report: Report, lang: str) -> list[tuple[str, ...]]:
    return [
        (item.severity.value, item.message(lang), item.why.say(lang), item.remedy.say(lang))
        for item in report.findings
    ]


def test_chinese_lines_are_those_of_the_document() -> None:
    assert spoken(run(MODEL.format(cast="half")), "zh") == [
        (
            "HIGH",
            ".half() call detected",
            "手动类型转换可能绕过AMP保护",
            "删除.half()，使用with autocast()",
        ),
        (
            "HIGH",
            "binary_cross_entropy usage",
            "该函数在AMP中会报错",
            "改用binary_cross_entropy_with_logits",
        ),
    ]


def test_bfloat16_is_spelled_as_it_stands_in_the_source() -> None:
    first = spoken(run(MODEL.format(cast="bfloat16")), "zh")[0]
    assert first[1] == ".bfloat16() call detected"
    assert first[3] == "删除.bfloat16()，使用with autocast()"


def test_without_a_sign_of_amp_the_loss_is_only_possible() -> None:
    source = MODEL.replace(".{cast}()", "")
    assert spoken(run(source), "en") == []
    assert [item.confidence for item in run(source, "possible").findings] == ["possible"]
