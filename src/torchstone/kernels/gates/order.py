"""Programs may run in any order: none needs or spoils what another one writes."""

from __future__ import annotations

from dataclasses import asdict

from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.messages.to_candidate import Mode
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session, SessionError
from torchstone.kernels.verdicts.said import COUNTED, both, call_trouble, joined, wrong_text

GATE = Gate(
    name="order",
    order=85,
    title=Text("Any order of programs", "任意程序顺序"),
    why=Text(
        "An interpreter runs programs one after the other; a device runs them at once, and a sum "
        "that waits for its neighbour is a race.",
        "解释器逐个运行程序；设备则同时运行，依赖相邻程序结果的求和就是竞争。",
    ),
    remedy=Text(
        "let every program write its own elements, or combine them with atomics or a second launch",
        "让每个程序只写自己的元素，或用原子操作、第二次启动来合并",
    ),
    implementations=("triton", "numba"),
    needs_all=True,
    problem="row_sum",
    good={
        "numba": """import numba
import numpy as np


@numba.njit(parallel=True)
def row_sum(x, out):
    for i in numba.prange(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


class ModelNew:
    def __call__(self, x):
        out = np.empty(x.shape[0], dtype=x.dtype)
        row_sum(np.ascontiguousarray(x), out)
        return out
""",
    },
    bad={
        "triton": """import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x, out, width, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    at = part * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + row * width + at, mask=at < width, other=0.0), axis=0)
    before = tl.load(out + row)
    tl.store(out + row, before + total)


class ModelNew:
    def __call__(self, x):
        x = torch.from_numpy(np.ascontiguousarray(x))
        out = torch.zeros(x.shape[0], dtype=x.dtype)
        if x.numel():
            grid = (x.shape[0], triton.cdiv(x.shape[1], 128))
            row_sum[grid](x, out, x.shape[1], BLOCK=128)
        return out.numpy()
""",
        "numba": """import numpy as np
from numba import cuda


@cuda.jit
def row_sum(x, out, filled):
    row = cuda.blockIdx.x
    total = 0.0
    for j in range(x.shape[1]):
        total += x[row, j]
    out[row] = total
    filled[row] = 1.0
    if row > 0 and filled[row - 1] == 0.0:
        out[row] = 0.0


class ModelNew:
    def __call__(self, x):
        out = np.zeros(x.shape[0], dtype=x.dtype)
        if x.shape[0]:
            row_sum[x.shape[0], 1](np.ascontiguousarray(x), out, np.zeros(x.shape[0]))
        return out
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    races = [
        (call, fault) for call in run.main.calls for fault in call.reply.faults
        if fault.kind.startswith("race")
    ]  # fmt: skip
    if races:
        texts = [both("{name}: {kind} ({where}, {elements} elements)",
                      "{name}：{kind}（{where}，{elements} 个元素）", name=call.name,
                      **asdict(fault))
                 for call, fault in races]  # fmt: skip
        rows = tuple((c.name, f.kind, f.where, f.elements) for c, f in races[:24])
        columns = (Text("case", "用例"), Text("race", "竞争"), Text("tensor", "张量"),
                   Text("elements", "元素"))  # fmt: skip
        table = Table(Text("Races", "竞争"), columns, rows, COUNTED)
        return GateResult(GATE.name, "failed", joined(texts, 3), (table,))
    return _permuted(run)


def _permuted(run: Run) -> GateResult:
    compiled = run.candidate.implementation == "numba" and not run.interpreted
    for order in ("reversed", "shuffled"):
        cases = _cases(run, small=order == "shuffled")
        try:
            mode = Mode(order=order, without_compiler=compiled)
            session, error = run.open_and_build(
                mode, dict.fromkeys(item.case.seed for item in cases)
            )
            call = None if error is not None else _first_wrong(run, session, cases)
        except SessionError:
            continue
        session.end(late=True)
        if call is not None:
            trouble = call_trouble(call)
            said = [trouble] if trouble is not None else wrong_text(call)
            words = {"reversed": "相反", "shuffled": "打乱"}
            detail = both("programs in {order} order: {en}", "程序按{zh}顺序运行：{more}",
                          order=order, zh=words[order], en=joined(said, 1).en,
                          more=joined(said, 1).zh)  # fmt: skip
            return GateResult(GATE.name, "failed", detail)
    return GateResult(GATE.name, "passed")


def _cases(run: Run, small: bool) -> list[Call]:
    """The problem's own case, where it is costly a smaller one, and one of another size."""
    sized = [call for call in run.main.families if call.family == "prime" and call.right]
    return [run.main.own[-1 if small else 0], *sized[:1]]


def _first_wrong(run: Run, session: Session, cases: list[Call]) -> Call | None:
    calls = (run.call(session, known.case) for known in cases)
    return next((call for call in calls if not call.right), None)
