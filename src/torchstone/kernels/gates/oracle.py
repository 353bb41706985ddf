"""Every element is as near to the double-precision answer as rounding allows; none is let off."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.causes import Advice, advice_for
from torchstone.kernels.verdicts.said import call_table, joined, pictures, wrong_text

GATE = Gate(
    name="oracle",
    order=50,
    title=Text("Error against the fp64 reference", "与双精度参考的误差"),
    why=Text(
        "A fixed tolerance passes zeros for a wide softmax and half precision for a sum; a share "
        "of outliers passes a lost tail.",
        "固定容差会放过宽 softmax 的全零和求和的半精度；允许一定比例的离群值会放过丢失的尾部。",
    ),
    remedy=Text(
        "compute in the precision of the inputs and write every element",
        "以输入的精度计算，并写出每一个元素",
    ),
    problem="row_sum",
    good={
        "numpy": """import numpy as np


class ModelNew:
    def __call__(self, x):
        return np.add.reduce(np.ascontiguousarray(x[:, ::-1]), axis=-1)
""",
        "numba": """import numba
import numpy as np


@numba.njit
def row_sum(x, out):
    for i in range(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


class ModelNew:
    def __call__(self, x):
        out = np.empty(x.shape[0], dtype=x.dtype)
        row_sum(x, out)
        return out
""",
    },
    bad={
        "numpy": """import numpy as np


class ModelNew:
    def __call__(self, x):
        return x.astype(np.float16).sum(axis=-1, dtype=np.float32)
""",
    },
)


_OTHER_WEIGHTS = Advice(
    Text("Its weights may not be the problem's: neither the names nor the contents of its state_dict() fit those of Model.",
         "其权重可能与题目不同：state_dict() 的名称和内容都与 Model 不符。"),
    Text("name parameters and buffers as Model does, or make them in the same order and in the same way",
         "参数与缓冲区的名称应与 Model 相同，或以相同的顺序和方式创建"),
)  # fmt: skip
_NO_KNOWN_CAUSE = Advice(
    Text("None of the usual causes explains it: each was tried by running the reference changed so.",
         "常见原因都不能解释：已逐一改动参考并运行比较。"),
    Text("compare one wrong element with the reference step by step: a term that is forgotten or counted "
         "twice, a scale inside of a nonlinear function, other weights",
         "选一个错误元素，与参考逐步对比：遗漏或重复的项、非线性函数内部的缩放、不同的权重"),
)  # fmt: skip


@GATE.check
def check(run: Run) -> GateResult:
    wrong = [call for call in run.main.own if call.wrong("error") or call.wrong("whole")]
    if not wrong and not run.facts.double:
        detail = Text(
            "the problem cannot run in double precision: compared with itself",
            "该问题无法以双精度运行：与其自身比较",
        )
        return GateResult(GATE.name, "passed", detail)
    if not wrong and run.facts.constant:
        return GateResult(GATE.name, "undecided", Text(
            "the reference gives one value everywhere: many a kernel would",
            "参考的输出处处相同：许多内核也会如此",
        ))  # fmt: skip
    if not wrong:
        return GateResult(GATE.name, "passed")
    texts = [text for call in wrong for text in wrong_text(call)]
    table = call_table(wrong, Text("The problem's own inputs", "问题自身的输入"))
    advice = advice_for(wrong)
    if not advice.why.en:
        matched = run.main.named or not run.main.weights
        advice = _NO_KNOWN_CAUSE if matched else _OTHER_WEIGHTS
    return GateResult(GATE.name, "failed", joined(texts, 3), (table, *pictures(wrong)),
                      remedy=advice.remedy, why=advice.why)  # fmt: skip
