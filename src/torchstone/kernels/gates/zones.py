"""Nothing outside of the buffers is read or written, and nothing is read that was not written."""

from __future__ import annotations

from dataclasses import asdict

from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import c_sample
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import COUNTED, both, joined

GATE = Gate(
    name="zones",
    order=48,
    title=Text("Red zones", "红区"),
    why=Text(
        "An access past the end looks right under an interpreter and corrupts memory on a device.",
        "越界访问在解释器下看似正确，在设备上却会破坏内存。",
    ),
    remedy=Text(
        "mask every load and store by the real size, and initialise what is accumulated into",
        "按真实大小为每次加载和存储加掩码，并初始化用于累加的缓冲区",
    ),
    problem="relu",
    good={
        "c": c_sample("""void relu(const float *x, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}
"""),
    },
    bad={
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), BLOCK=512)
        return y
""",
        "c": c_sample("""void relu(const float *x, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
  y[n] = 0;
}
"""),
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    texts: list[Text] = []
    rows: list[tuple[str, str, str, int]] = []
    for call in run.main.calls:
        for zone in call.reply.zones:
            texts.append(both(
                "{name}: {elements} elements written {side} {buffer}",
                "{name}：在 {buffer} 的{zh}写入了 {elements} 个元素", name=call.name,
                elements=zone.elements, side=zone.side, buffer=zone.buffer,
                zh="前面" if zone.side == "before" else "后面",
            ))  # fmt: skip
            rows.append((call.name, "write", f"{zone.side} {zone.buffer}", zone.elements))
        for fault in call.reply.faults:
            if fault.kind.startswith("race"):
                continue
            texts.append(both("{name}: {kind} {where}, {elements} elements",
                              "{name}：{kind} {where}，{elements} 个元素", name=call.name,
                              **asdict(fault)))  # fmt: skip
            rows.append((call.name, fault.kind, fault.where, fault.elements))
    # what differs by itself is the business of another gate
    same = all(call.digest == run.main.steady.digest for call in run.main.repeated)
    for first, again in run.main.refilled if same else []:
        if again.digest != first.digest and again.ended is None:
            texts.append(both(
                "{name}: the answer changes with the contents of memory that nobody wrote",
                "{name}：结果随未写入内存的内容而变", name=first.name,
            ))  # fmt: skip
            rows.append((first.name, "read", "unwritten memory or margins", 0))
    if not texts:
        return GateResult(GATE.name, "passed")
    columns = (Text("case", "用例"), Text("access", "访问"), Text("where", "位置"),
               Text("elements", "元素"))  # fmt: skip
    table = Table(Text("Accesses outside", "越界访问"), columns, tuple(rows[:24]), COUNTED)
    return GateResult(GATE.name, "failed", joined(texts, 3), (table,))
