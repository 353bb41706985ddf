"""NaN and infinity come out exactly where they must."""

from __future__ import annotations

from torchstone.core.text import NOTHING, Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import c_sample, torch_sample
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.causes import advice_for
from torchstone.kernels.verdicts.said import UNANSWERED, call_table, joined, wrong_text

GATE = Gate(
    name="pattern",
    order=55,
    title=Text("NaN and infinity", "NaN 与无穷"),
    why=Text(
        "A kernel that swallows a NaN hides a broken model; one that invents a NaN breaks a good "
        "one.",
        "吞掉 NaN 的内核会掩盖出错的模型；凭空产生 NaN 的内核会毁掉正常的模型。",
    ),
    remedy=Text(
        "let NaN pass through comparisons, as in `where(x < 0, 0, x)`, and subtract the maximum "
        "before exp",
        "比较时让 NaN 通过，例如 `where(x < 0, 0, x)`；在 exp 之前减去最大值",
    ),
    problem="relu",
    good={
        "torch": torch_sample("""return torch.where(x < 0, torch.zeros_like(x), x)
"""),
    },
    bad={
        "torch": torch_sample("""return torch.where(x > 0, x, torch.zeros_like(x))
"""),
        "c": c_sample("""#include <math.h>
void relu(const float *x, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = fmaxf(x[i], 0.0f);
}
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    wrong = [call for call in run.main.calls if call.wrong("pattern")]
    if not wrong and not run.main.families:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    if not wrong:
        return GateResult(GATE.name, "passed", _conventions(run))
    texts = [text for call in wrong for text in wrong_text(call)[:1]]
    table = call_table(wrong, Text("NaN and infinity", "NaN 与无穷"))
    advice = advice_for([call for call in wrong if call.facts.causes])
    return GateResult(
        GATE.name, "failed", joined(texts, 3), (table,), remedy=advice.remedy, why=advice.why
    )


def _conventions(run: Run) -> Text:
    """Answers that differ from torch's where torch's is a convention."""
    count = sum(item.convention for call in run.main.calls for item in call.facts.outputs)
    if not count:
        return NOTHING
    return Text(
        f"{count} elements are not finite where attention sees no key, a square overflows, a mask "
        "hides them or nothing is reduced; the reference gives a number there by convention, and both are accepted",
        f"{count} 个元素在注意力看不到任何键、平方溢出、被掩码遮住或没有元素可归约处不是有限数；参考在此按惯例给出数值，两者均接受",
    )
