"""Headlines: cut where a person would stop reading, in both languages."""

from __future__ import annotations

import json

from torchstone.core.text import Text, shortened
from torchstone.kernels import load_problem
from torchstone.kernels.candidate import Candidate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.verdicts.verdict import Verdict
from torchstone.kernels.verifier import verify

EN = "nan seed {n} (24×37): got 0 at [3, {n}8], expected nan (37 of 888 elements are wrong)"
SWFT = """from swft import core


@core.sub_kernel(core_num=8)
def relu(x, out):
    out.load(x)


class ModelNew:
    def __call__(self, x):
        relu(x, x)
"""
ZH = "nan seed {n}（24×37）：[3, {n}8] 处得到 0，应为 nan（888 个元素中有 37 个错误）"


def test_a_headline_is_cut_after_a_clause() -> None:
    numbers = range(1, 7)
    detail = Text(
        "; ".join(EN.format(n=n) for n in numbers), "；".join(ZH.format(n=n) for n in numbers)
    )
    result = GateResult("pattern", "failed", detail)
    verdict = Verdict(
        load_problem("softmax"), Candidate("", "torch"), (result,), outcome="rejected"
    )
    report = verdict.report()
    assert report.answer is not None
    headline = report.answer.headline
    assert headline.en.endswith("elements are wrong) …")
    assert headline.zh.endswith("个错误）…")
    assert headline.en in json.dumps(json.loads(report.to("json")), ensure_ascii=False)


def test_what_closes_a_gap_is_told_in_chinese() -> None:
    verdict = verify("relu", Candidate(SWFT, "swft"))
    (gap, *_) = verdict.report().gaps
    assert gap.say_close("zh") == "在装有昇腾 NPU 及其工具包的机器上验证"


def test_a_text_is_cut_after_a_word() -> None:
    assert shortened("short", 5) == "short"
    assert shortened("got 0 at [3, 18] where", 15) == "got 0 at [3 …"
    assert shortened("x" * 30, 10) == "x" * 9 + " …"
    assert shortened("第一句话很长，第二句话也很长", 10) == "第一句话很长…"
