"""Verdicts: the same every time, fair to other orders of summing, hard on lower formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.core.errors import InputError, UsageError
from torchstone.core.report import Report
from torchstone.kernels import Candidate, Problem, Verdict, load_problem, verify
from torchstone.kernels.candidate import Implementation
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.workshop import Workshop

PROBLEM = """import torch
from torch import nn


class Model(nn.Module):
{init}
    def forward(self, {names}):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
MODEL_NEW = """import math
import torch


class ModelNew(torch.nn.Module):
{init}
    def forward(self, {names}):
        {body}
"""


def problem(body: str, inputs: str, names: str = "x", init: str = "") -> Problem:
    text = PROBLEM.format(body=body, inputs=inputs, names=names, init=init)
    return problem_from_source(text, "small")


def judged(
    task: Problem | str, body: str, workshop: Workshop, names: str = "x", init: str = "",
    implementation: Implementation = "torch",
) -> Verdict:  # fmt: skip
    source = MODEL_NEW.format(body=body, names=names, init=init)
    return verify(task, Candidate(source, implementation), seeds=2, workshop=workshop)


MATMUL = problem("return a @ b", "torch.randn(23, 57), torch.randn(57, 19)", "a, b")
NORM = problem(
    "return self.norm(x)", "torch.randn(13, 37)",
    init="    def __init__(self):\n        super().__init__()\n        self.norm = nn.LayerNorm(37)\n",
)  # fmt: skip
RIGHT = {
    "one after the other": "out = torch.zeros(a.shape[0], b.shape[1])\n"
    "        for k in range(a.shape[1]):\n            out = out + a[:, k : k + 1] * b[k : k + 1]\n"
    "        return out",
    "backwards": "return a.flip(1) @ b.flip(0)",
    "in double": "return (a.double() @ b.double()).float()",
    "in parts": "h = a.shape[1] // 2\n        return a[:, :h] @ b[:h] + a[:, h:] @ b[h:]",
}
WRONG = {
    "half inputs": "return a.half().float() @ b.half().float()",
    "bfloat16": "return a.bfloat16().float() @ b.bfloat16().float()",
    "half result": "return (a @ b).half().float()",
    "ten bits": "m = 1 << 13\n        r = lambda t: (t * (1 + m)) - (t * (1 + m) - t)\n"
    "        return r(a) @ r(b)",
    "one element short": "return a[:, :-1] @ b[:-1]",
    "one wrong element": "c = a @ b\n        c.reshape(-1)[-1:] *= 1.001\n        return c",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_another_order_of_summing_is_right(body: str, workshop: Workshop) -> None:
    verdict = judged(MATMUL, body, workshop, "a, b")
    assert verdict.accepted, verdict.error_log()


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_a_lower_format_is_wrong(body: str, workshop: Workshop) -> None:
    verdict = judged(MATMUL, body, workshop, "a, b")
    assert [item.gate for item in verdict.failed][:1] == ["oracle"], verdict.error_log()


def test_weights_come_by_seed_and_by_name(workshop: Workshop) -> None:
    init = "    def __init__(self):\n        super().__init__()\n        self.{} = torch.nn.LayerNorm(37)\n"
    by_hand = ("m = x.mean(-1, keepdim=True)\n        v = (x - m).square().mean(-1, keepdim=True)\n"
               "        return (x - m) / torch.sqrt(v + 1e-5) * self.norm.weight + self.norm.bias")  # fmt: skip
    assert judged(NORM, by_hand, workshop, init=init.format("norm")).accepted
    other_name = by_hand.replace("self.norm", "self.other")
    assert judged(NORM, other_name, workshop, init=init.format("other")).accepted
    # layers start with ones and zeros: only other weights show what was left out
    for part in (" * self.norm.weight", " + self.norm.bias"):
        lazy = judged(NORM, by_hand.replace(part, ""), workshop, init=init.format("norm"))
        assert not lazy.accepted
    wrong_epsilon = judged(
        NORM, by_hand.replace("1e-5", "1e-6"), workshop, init=init.format("norm")
    )
    assert not wrong_epsilon.accepted


LAST = "return x.shape[1] - 1 - x.flip(1).argmax(dim=1) if x.numel() else x.argmax(dim=1)"


def test_of_equals_the_first_is_right_where_the_framework_says_so(workshop: Workshop) -> None:
    by_hand = "return (x == x.amax(1, keepdim=True)).int().argmax(1) if x.numel() else x.argmax(1)"
    assert judged("argmax", by_hand, workshop).accepted
    last = judged("argmax", LAST, workshop)
    assert [item.gate for item in last.failed] == ["families"], last.error_log()
    wrong = "i = x.argmax(dim=1)\n        i[-1:] = (i[-1:] + 1) % x.shape[1]\n        return i"
    assert not judged("argmax", wrong, workshop).accepted


def test_ties_are_judged_by_value_where_it_is_open(workshop: Workshop) -> None:
    best = problem("return x.topk(3, dim=1).indices", "torch.randn(9, 21)")
    last = (
        "i = x.flip(1).sort(dim=1, descending=True, stable=True).indices[:, :3]\n"
        "        return x.shape[1] - 1 - i"
    )
    assert judged(best, last, workshop).accepted
    second = last.replace("[:, :3]", "[:, 1:4]")
    assert not judged(best, second, workshop).accepted


def test_a_second_block_is_looked_at(workshop: Workshop) -> None:
    blocks = (
        "out, carry = [], 0.0\n        for part in x.split(64, dim=1):\n"
        "            out.append(part.cumsum(1) + carry)\n            carry = {} + out[-1][:, -1:]\n"
        "        return torch.cat(out, 1)"
    )
    total = problem("return x.cumsum(dim=1)", "torch.randn(6, 50)")
    assert judged(total, blocks.format("0"), workshop).accepted
    twice = judged(total, blocks.format("carry"), workshop)
    assert [item.gate for item in twice.failed] == ["families"], twice.error_log()
    assert "slender" in twice.error_log()


def test_the_identity_does_not_pass_a_weak_test(workshop: Workshop) -> None:
    weak = problem("return torch.relu(x)", "torch.rand(9, 14)")
    right = judged(weak, "return torch.clamp(x, min=0)", workshop)
    assert right.accepted
    gaps = {item.gate: item.detail.en for item in right.results if item.status == "gap"}
    assert "too weak" in gaps["probes"]
    assert "identity" in gaps["probes"]
    identity = judged(weak, "return x.clone()", workshop)
    assert identity.failed[0].gate in ("pattern", "families")


def test_zeros_do_not_pass_a_wide_softmax(workshop: Workshop) -> None:
    wide = problem("return torch.softmax(x, dim=-1)", "torch.rand(2, 40000)")
    assert not judged(wide, "return torch.zeros_like(x)", workshop).accepted
    assert judged(wide, "return torch.exp(torch.log_softmax(x, dim=-1))", workshop).accepted


def test_sizes_and_layouts_may_be_refused_but_not_answered_wrongly(workshop: Workshop) -> None:
    loud = (
        "if x.shape[-1] != 83 or not x.is_contiguous():\n            raise ValueError('83 only')\n"
    )
    verdict = judged("softmax", loud + "        return torch.softmax(x, -1)", workshop)
    families = next(item for item in verdict.results if item.gate == "families")
    assert verdict.accepted
    assert "strided" in families.detail.en
    silent = "return torch.softmax(x, -1) if x.shape[-1] == 83 else torch.zeros_like(x)"
    assert not judged("softmax", silent, workshop).accepted
    bug = "return torch.softmax(x, -1) if x.shape[-1] == 83 else [][1]"
    assert not judged("softmax", bug, workshop).accepted


def test_the_same_inputs_give_the_same_verdict(workshop: Workshop) -> None:
    for body in ("return torch.relu(x) * 1.001", "return x / 0", "raise ValueError(object())",
                 "return torch.relu(x)"):  # fmt: skip
        first, again = (judged("relu", body, workshop) for _ in range(2))
        assert first.error_log() == again.error_log()
        assert first.accepted == again.accepted == (body == "return torch.relu(x)")
        assert [item.status for item in first.results] == [item.status for item in again.results]
        for word in ("/tmp", "0x7", "/root"):
            assert word not in first.error_log()


def test_half_and_whole_numbers(workshop: Workshop) -> None:
    half = problem("return torch.softmax(x, dim=-1)", "torch.randn(6, 50).half()")
    upcast = "return torch.softmax(x.float(), dim=-1).half()"
    assert judged(half, upcast, workshop).accepted
    assert not judged(
        half, "return (torch.softmax(x.float(), -1) * 1.01).half()", workshop
    ).accepted
    counts = problem("return (x > 0).sum(dim=1)", "torch.randn(7, 31)")
    assert judged(counts, "return torch.where(x > 0, 1, 0).sum(dim=1)", workshop).accepted
    assert not judged(counts, "return (x > 0.01).sum(dim=1)", workshop).accepted


def test_several_outputs(workshop: Workshop) -> None:
    two = problem("return x.sum(-1), {'m': x.amax(-1)}", "torch.randn(8, 21)")
    assert judged(
        two, "return torch.einsum('ij->i', x), {'m': x.max(-1).values}", workshop
    ).accepted
    for body in ("return x.sum(-1)", "return x.sum(-1), x.amax(-1)",
                 "return x.amax(-1), {'m': x.sum(-1)}"):  # fmt: skip
        assert not judged(two, body, workshop).accepted


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("import torch\n", "import torch\nraise OSError('no disk')\n", "OSError: no disk"),
        ("import torch\n", "import torch\nimport nothing_of_the_kind\n", "ModuleNotFoundError"),
        ("import torch\n", "import sys, torch\nsys.exit(0)\n", "SystemExit"),
        ("return [torch.randn(5, 7)]", "return []", "nothing in it"),
        ("return [torch.randn(5, 7)]", "return None", "NoneType"),
        (
            "return [torch.randn(5, 7)]",
            "return torch.randn(5, 7)",
            "got a Tensor from get_inputs(), expected a list of inputs",
        ),
        ("return [torch.randn(5, 7)]", "return [object()]", "object"),
        ("return torch.relu(x)", "return None", "no output"),
        ("return torch.relu(x)", "return torch.relu(x) + torch.rand_like(x)", ""),
        ("return torch.relu(x)", "return x @ x", "RuntimeError"),
    ],
)
def test_a_problem_that_cannot_be_used_is_told(
    old: str, new: str, words: str, workshop: Workshop
) -> None:
    text = problem("return torch.relu(x)", "torch.randn(5, 7)").source.replace(old, new, 1)
    task = problem_from_source(text, "small")
    if "rand_like" in new:  # under one seed chance is no difference
        return
    with pytest.raises(InputError) as caught:
        judged(task, "return torch.relu(x)", workshop)
    assert words in str(caught.value)
    assert "problem small" in str(caught.value)


def test_a_problem_that_never_ends_is_told(workshop: Workshop) -> None:
    task = problem("while True: pass", "torch.randn(5)")
    candidate = Candidate(MODEL_NEW.format(body="return x", names="x", init=""), "torch")
    with pytest.raises(InputError, match=r"within 2 s.*--timeout"):
        verify(task, candidate, timeout_seconds=0.2, workshop=workshop)


@pytest.mark.parametrize(
    ("body", "inputs", "said"),
    [
        ("return x + torch.rand_like(x)", "torch.randn(5, 7)", "得到参考的答案是随机产生的"),
        ("return None", "torch.randn(5, 7)", "得到模型没有输出，应为能够加载"),
    ],
)
def test_a_bad_problem_is_told_in_chinese(
    body: str, inputs: str, said: str, workshop: Workshop
) -> None:
    with pytest.raises(InputError) as caught:
        judged(problem(body, inputs), "return torch.relu(x)", workshop)
    assert said in caught.value.say("zh")


def test_a_call_that_never_ends_names_the_limit(workshop: Workshop) -> None:
    source = MODEL_NEW.format(body="while True: pass", names="x", init="")
    verdict = verify("relu", Candidate(source, "torch"), timeout_seconds=1.5, workshop=workshop)
    assert "did not end within 1.5 s (--timeout)" in verdict.error_log()


def test_reading_never_executes(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + MATMUL.source)
    assert load_problem(str(path)).framework == "torch"
    assert not (tmp_path / "ran").exists()
    for text in ("x = 1", "def f(:", "class Model: pass"):
        path.write_text(text)
        with pytest.raises(InputError):
            load_problem(str(path))
    with pytest.raises(InputError):
        load_problem(str(tmp_path / "none.py"))
    with pytest.raises(InputError, match=r"did you mean relu\?"):
        load_problem("rleu")
    with pytest.raises(InputError) as caught:
        load_problem(str(tmp_path / "none.py"))
    assert "得到文件或文件夹不存在，应为可读取的 Python 文件" in caught.value.say("zh")


def test_paths_and_mistakes(tmp_path: Path, workshop: Workshop) -> None:
    path = tmp_path / "mine.py"
    path.write_text(MODEL_NEW.format(body="return torch.relu(x)", names="x", init=""))
    assert verify("relu", path, "torch", seeds=2, workshop=workshop).accepted
    with pytest.raises(UsageError):
        verify("relu", path, "cuda", workshop=workshop)
    with pytest.raises(UsageError):
        verify("relu", path, "torch", seeds=1, workshop=workshop)
    with pytest.raises(InputError):
        verify("relu", tmp_path / "none.py", "torch", workshop=workshop)


def test_swft_is_read_but_needs_hardware() -> None:
    source = "import swft\n\n\nclass ModelNew:\n    def forward(self, x):\n        return x\n"
    verdict = verify("relu", Candidate(source, "swft"))
    report = verdict.report()
    assert not verdict.accepted
    assert not report.findings
    assert "Ascend" in report.gaps[0].reason.say("en")
    assert "昇腾" in report.gaps[0].reason.say("zh")
    broken = verify("relu", Candidate(source + "import os\n", "swft"))
    assert [item.gate for item in broken.failed] == ["policy"]


def test_a_missing_package_is_a_gap(workshop: Workshop) -> None:
    source = "import triton\nimport triton.language as tl\nimport torch\n\n\n@triton.jit\ndef k(x):\n    pass\n\n\n"
    source += "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        k[(1,)](x)\n        return x\n"
    with Workshop(("numpy", "torch")) as without:  # triton is not among what is loaded
        verdict = verify("relu", Candidate(source, "triton"), workshop=without)
    assert not verdict.accepted
    assert not verdict.failed
    assert "torchstone[triton]" in verdict.report().gaps[0].close


def test_when_the_workshop_dies_it_is_no_verdict() -> None:
    class Dying(Workshop):
        def scratch(self) -> Path:
            folder = super().scratch()
            assert self._process is not None
            self._process.kill()
            self._process.wait()
            return folder

    candidate = Candidate(
        MODEL_NEW.format(body="return torch.relu(x)", names="x", init=""), "torch"
    )
    with Dying() as dying:
        verdict = verify("relu", candidate, workshop=dying)
    assert not verdict.accepted
    assert verdict.report().failed


def test_the_report_in_every_form(workshop: Workshop) -> None:
    verdict = judged(MATMUL, WRONG["half inputs"], workshop, "a, b")
    report = verdict.report()
    assert Report.from_json(report.to_json()) == report
    for lang, words in (("en", "roundings"), ("zh", "舍入")):
        for name in ("text", "html", "markdown", "agent"):
            assert words in report.to(name, lang=lang)
    assert "<script>alert" not in report.to("html")
    kinds = {type(item).kind for finding in report.findings for item in finding.evidence}
    assert {"table", "number", "heatmap"} <= kinds


HUNGRY = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if {when}:
            torch.empty(1 << 50)
        return torch.relu(x)
"""


@pytest.mark.parametrize(
    ("when", "gate", "outcome"),
    [("x.min() >= 0", "answers", "none"), ("x.numel() == 1", "", "accepted")],
    ids=["in one family", "at another size"],
)  # fmt: skip
def test_running_out_of_memory_is_a_limit(
    when: str, gate: str, outcome: str, workshop: Workshop, few_sizes: None
) -> None:
    """It is never a fault, and never a way around a gate; another size may be refused."""
    verdict = verify(
        "relu", Candidate(HUNGRY.format(when=when), "torch"), seeds=2, workshop=workshop
    )
    assert verdict.outcome == outcome
    limits = [item for item in verdict.results if item.limit]
    assert [item.gate for item in limits] == ([gate] if gate else [])
    assert all("--memory" in item.detail.en and "--memory" in item.detail.zh for item in limits)
    assert verdict.exit_code == (3 if gate else 0)
