"""A kernel is code for a device: Triton's compiler takes it, and where a GPU is, it is run there."""

from __future__ import annotations

import statistics

from torchstone.core.evidence import Command, Number
from torchstone.core.pictures import Evidence, Table
from torchstone.core.text import Text
from torchstone.kernels.device.compiling import Compiled, Refused, compiled
from torchstone.kernels.device.on_gpu import OnDevice, found_device, run_on
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.messages.facts import Told
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verdicts.said import (
    both,
    call_table,
    call_trouble,
    error_text,
    joined,
    wrong_text,
)

GATE = Gate(
    name="device",
    order=92,
    title=Text("Compiles for a device and runs there", "可为设备编译并在设备上运行"),
    why=Text(
        "An interpreter runs any Python inside a kernel, blocks of any size and tiles of any "
        "number; a device runs what its compiler takes and what fits into its shared memory.",
        "解释器会运行内核中的任意 Python、任意大小的块；设备只运行其编译器接受且共享内存放得下的代码。",
    ),
    remedy=Text(
        "write the kernel in Triton's language alone, with blocks that are powers of two and fit "
        "into shared memory",
        "只用 Triton 语言编写内核，块大小取 2 的幂并放得进共享内存",
    ),
    implementations=("triton",),
    needs_all=True,
    problem="relu",
    good={
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            relu[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256, num_warps=2)
        return y
""",
    },
    bad={
        "triton": """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    chosen = [tl.where(value < 0, 0.0, value) for _ in range(1)]
    tl.store(y + at, chosen.pop(), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            relu[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
""",
    },
)
_COMPILED = Text("compiled with Triton's own compiler, no device needed",
                 "用 Triton 自身的编译器编译，无需设备")  # fmt: skip
_CPU_TIME = Text(
    "CPU time of the compiler, all kernels together", "编译器的 CPU 时间，全部内核合计"
)
_TIMED = Text(
    "median of 9 turns on fresh inputs, by the device's clock, in turn with the reference there",
    "9 轮的中位数，每轮使用新输入，按设备时钟计时，与同一设备上的参考交替运行",
)
_NO_DEVICE = Text(
    "nothing was run on a device: none is here; run this on a machine with a GPU",
    "未在设备上运行：此处没有设备；请在有 GPU 的机器上运行",
)


@GATE.check
def check(run: Run) -> GateResult:
    built = compiled(run)
    if built.refused:
        return _refused(built)
    device = found_device()
    if not device:
        return _result(built, None)
    with Workshop(("numpy", "torch", "triton"), device=device) as workshop:
        ran = run_on(run, device, workshop)
        run.workshop.spent.cpu_seconds += workshop.spent.cpu_seconds
    return _wrong_there(run, ran) or _result(built, ran)


def _refused(built: Compiled) -> GateResult:
    texts = [_refusal(item, built.target.name) for item in built.refused]
    lines = "\n".join(item.en for item in texts)
    shown = Command(f"triton.compile for {built.target.name}", 1, lines)
    line = next((item.line for item in built.refused if item.line), 0)
    return GateResult(GATE.name, "failed", joined(texts, 3), (shown,), line=line)


def _refusal(item: Refused, target: str) -> Text:
    said = error_text(Told(item.kind, item.text, item.line))
    if not item.kernel:
        return both("without the interpreter: {said}", "不用解释器时：{said}", said=said)
    return both("{kernel} does not compile for {target}: {said}",
                "{kernel} 无法为 {target} 编译：{said}", kernel=item.kernel, target=target,
                said=said)  # fmt: skip


def _wrong_there(run: Run, ran: OnDevice) -> GateResult | None:
    """What a device showed to be wrong; None when nothing was."""
    trouble = None
    if ran.error is not None:
        said = error_text(ran.error)
        trouble = both("on {device}: raises {said}", "在 {device} 上抛出 {said}",
                       device=ran.device, said=said)  # fmt: skip
    elif ran.ended:
        trouble = both("on {device}: the process ended ({said})", "在 {device} 上进程结束（{said}）",
                       device=ran.device, said=ran.ended)  # fmt: skip
    if trouble is not None:
        return GateResult(GATE.name, "failed", trouble, (Command(ran.device, 1, trouble.en),))
    table = call_table(ran.calls, both("On {device}", "在 {device} 上", device=ran.device))
    texts: list[Text] = []
    for call in ran.wrong:
        said_of = call_trouble(call) or (
            Text("another form", "形式不同") if call.facts.form else None
        )
        named = both("{name}: {en}", "{name}：{zh}", name=call.name, en=said_of.en,
                     zh=said_of.zh) if said_of is not None else None  # fmt: skip
        texts += [both("on {device}, {en}", "在 {device} 上，{zh}", device=ran.device, en=item.en,
                       zh=item.zh)
                  for item in ([named] if named is not None else wrong_text(call))]  # fmt: skip
    texts += [both("on {device}, {name}: input {index} was changed by the call",
                   "在 {device} 上，{name}：调用改变了输入 {index}", device=ran.device,
                   name=call.name, index=index)
              for call, index in ran.changed(run.facts.writes_inputs)]  # fmt: skip
    return GateResult(GATE.name, "failed", joined(texts, 3), (table,)) if texts else None


def _result(built: Compiled, ran: OnDevice | None) -> GateResult:
    notes = _notes(built)
    if ran is None:
        notes.append(_NO_DEVICE)
    elif ran.nothing:
        notes.append(both("nothing was run on a device: {why}", "未在设备上运行：{why}",
                          why=ran.nothing))  # fmt: skip
    else:
        notes.append(both("right on {device} in {count} calls", "在 {device} 上 {count} 次调用均正确",
                          device=ran.device, count=len(ran.calls)))  # fmt: skip
    evidence = (*_kernels(built), *(_times(ran) if ran is not None and ran.ours_s else ()))
    if built.gap:
        return GateResult(GATE.name, "gap", joined(notes), evidence,
                          close=Text("verify on a machine with Triton's compiler and a GPU",
                                     "在装有 Triton 编译器和 GPU 的机器上验证"))  # fmt: skip
    return GateResult(GATE.name, "passed", joined(notes), evidence)


def _notes(built: Compiled) -> list[Text]:
    """Sentences about what was compiled."""
    target = built.target.name
    names = ", ".join(dict.fromkeys(item.kernel for item in built.made))
    notes = []
    if built.gap:
        notes.append(both("not compiled for {target}: {why}", "未为 {target} 编译：{why}",
                          target=target, why=built.gap))  # fmt: skip
    if names:
        notes.append(both("{names} compiled for {target}", "{names} 已为 {target} 编译",
                          names=names, target=target))  # fmt: skip
    if any(item.tf32 for item in built.made):
        notes.append(Text(
            "tl.dot rounds its inputs to TF32 there, which the interpreter does not: pass "
            'input_precision="ieee" to keep single precision',
            "tl.dot 在设备上会把输入舍入到 TF32，而解释器不会：传入 input_precision=\"ieee\" 以保持单精度",
        ))  # fmt: skip
    if built.elsewhere:
        first = built.elsewhere[0]
        notes.append(both("refused at another size: {said}", "在其他大小下被拒绝：{said}",
                          said=_refusal(first, target).en))  # fmt: skip
    if built.left_out:
        notes.append(both("{count} more kinds of launch were not compiled",
                          "另有 {count} 种启动未编译", count=built.left_out))  # fmt: skip
    return notes


def _kernels(built: Compiled) -> tuple[Evidence, ...]:
    if not built.made:
        return ()
    rows = tuple(
        (item.kernel, item.types, item.registers, item.shared_bytes, item.spilled_bytes)
        for item in built.made
    )
    columns = (
        Text("kernel", "内核"), Text("types and constants", "类型与常量"),
        Text("registers per thread", "每线程寄存器"),
        Text("shared memory per program, B", "每个程序的共享内存（B）"),
        Text("spilled per thread, B", "每线程溢出（B）"),
    )  # fmt: skip
    title = both("Compiled for {target}", "为 {target} 编译", target=built.target.name)
    seconds = sum(item.seconds for item in built.made)
    return (Table(title, columns, rows, _COMPILED),
            Number(Text("compile", "编译"), seconds, "s", _CPU_TIME))  # fmt: skip


def _times(ran: OnDevice) -> tuple[Evidence, ...]:
    ratios = sorted(b / max(a, 1e-9) for a, b in zip(ran.ours_s, ran.theirs_s, strict=True))
    return (
        _number(Text("candidate", "候选"), sorted(ran.ours_s), "s"),
        _number(Text("reference", "参考"), sorted(ran.theirs_s), "s"),
        _number(Text("speed-up", "加速比"), ratios, "×"),
    )


def _number(name: Text, ordered: list[float], unit: str) -> Number:
    spread = ordered[len(ordered) * 3 // 4] - ordered[len(ordered) // 4]
    return Number(name, statistics.median(ordered), unit, _TIMED, spread)
