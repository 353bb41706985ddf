"""Other values, layouts and sizes are answered as rightly as the problem's own."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import c_sample, torch_sample
from torchstone.kernels.messages.to_referee import FindProbes, Probes
from torchstone.kernels.sessions.calls import POISONED, Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.causes import advice_for
from torchstone.kernels.verdicts.said import (
    UNANSWERED,
    both,
    call_table,
    call_trouble,
    joined,
    pictures,
    wrong_text,
)

GATE = Gate(
    name="families",
    order=60,
    title=Text("Families of inputs", "输入类别"),
    why=Text(
        "Inputs that are never negative pass the identity for ReLU; sizes that divide by the block "
        "hide a wrong mask, and sizes of one block what happens in the second.",
        "从不为负的输入会让恒等函数冒充 ReLU；能被分块整除的尺寸会掩盖错误的掩码；只有一个分块的尺寸会掩盖第二个"
        "分块中的错误。",
    ),
    remedy=Text(
        "be right for every size and layout that the reference takes, or raise an error for it",
        "对参考实现接受的每种尺寸和布局都给出正确结果，否则应抛出错误",
    ),
    problem="relu",
    good={
        "c": """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void relu(const float *x, float *y, long rows, long columns) {
  for (long i = 0; i < rows; i++)
    for (long start = 0; start < columns; start += 64)
      for (long j = start; j < start + 64 && j < columns; j++)
        y[i * columns + j] = x[i * columns + j] < 0 ? 0 : x[i * columns + j];
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.relu(x, y, x.shape[0], x.shape[1])
        return y
""",
        "numba": """import numba
import torch


@numba.njit
def relu(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 0.0 if x[i, j] < 0.0 else x[i, j]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape)
        relu(x.numpy(), y.numpy())
        return y
""",
    },
    bad={
        "numba": """import numba
import torch


@numba.njit
def relu(x, y):
    for i in range(x.shape[0]):
        for start in range(0, x.shape[1], 64):
            for j in range(min(64, x.shape[1] - start)):
                y[i, start + j] = 0.0 if x[i, j] < 0.0 else x[i, j]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape)
        relu(x.numpy(), y.numpy())
        return y
""",
        "torch": torch_sample("""return torch.where(x < -100, x, torch.relu(x))
"""),
        "c": c_sample("""void relu(const float *x, float *y, long n) {
  long i = 0;
  for (; i + 8 <= n; i += 8)
    for (long j = i; j < i + 8; j++) y[j] = x[j] < 0 ? 0 : x[j];
  for (; i < n; i++) y[i] = x[i];
}
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    main = run.main
    if not main.families:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    wrong = [call for call in main.families if _wrong(call)]
    if wrong:
        texts = [text for call in wrong for text in _texts(call)[:1]]
        table = call_table(wrong, Text("Families that fail", "未通过的类别"))
        advice = advice_for(wrong)
        return GateResult(GATE.name, "failed", joined(texts, 4), (table, *pictures(wrong)),
                          remedy=advice.remedy, why=advice.why)  # fmt: skip
    if run.facts.constant and _would_accept_anything(run):
        return GateResult(GATE.name, "undecided", Text(
            "the reference gives one value in every family: many a kernel would",
            "参考在所有类别中的输出处处相同：许多内核也会如此",
        ))  # fmt: skip
    return GateResult(GATE.name, "passed", joined(_notes(run)))


def _would_accept_anything(run: Run) -> bool:
    """No family tells the reference from one number everywhere."""
    found = run.ask_referee(FindProbes(), Probes).found
    return any(name in found and not found[name] for name in ("zeros", "constant"))


def _notes(run: Run) -> list[Text]:
    """What a reader should know about families that passed."""
    main = run.main
    notes = []
    refused = sorted({call.family for call in main.families if call.refused})
    if refused:
        names = ", ".join(refused)
        notes.append(Text(f"refused with an error, which is allowed: {names}",
                          f"以错误拒绝（允许）：{names}"))  # fmt: skip
    if (main.small or run.facts.small) and not run.interpreted:
        notes.append(Text("at smaller sizes: the problem's own are too large to keep for all of them",
                          "使用较小的尺寸：问题自身的尺寸过大，无法为所有类别保留"))  # fmt: skip
    elif main.small or main.small_own:
        notes.append(Text("at smaller sizes, because it is interpreted",
                          "因解释执行而使用较小的尺寸"))  # fmt: skip
    if main.left_out:
        count = main.left_out
        why = (
            ("it is interpreted", "解释执行")
            if run.interpreted
            else ("its weights are large", "权重很大")
        )
        notes.append(Text(f"other sizes left out, because {why[0]}: {count}",
                          f"因{why[1]}而略去的其他尺寸：{count}"))  # fmt: skip
    if run.own_layouts:
        notes.append(Text("in the problem's own memory layout only (--layouts own)",
                          "仅限问题自身的内存布局（--layouts own）"))  # fmt: skip
    if run.own_sizes:
        notes.append(
            Text(
                "at the problem's own sizes only (--sizes own)", "仅限问题自身的尺寸（--sizes own）"
            )
        )
    if main.skipped:
        names = ", ".join(sorted(main.skipped))
        notes.append(Text(f"not for this problem: {names}", f"不适用于此问题：{names}"))
    return notes


def _wrong(call: Call) -> bool:
    if call.refused:
        return False
    trouble = call.ended is not None or call.error is not None
    if trouble or call.wrong("error") or call.wrong("whole"):
        return True
    # what a NaN or an infinity in the inputs does is the business of another gate
    return bool(call.wrong("pattern")) and call.family not in POISONED


def _texts(call: Call) -> list[Text]:
    trouble = call_trouble(call)
    if trouble is None:
        return wrong_text(call)
    return [both("{name}: {en}", "{name}：{zh}", name=call.name, en=trouble.en, zh=trouble.zh)]
