"""Every value of the answer was written by a kernel: shown by launching the kernels again elsewhere.

What the candidate's process counts, its own code could have changed. So the launches of one call are
recorded and repeated in a process that holds the kernels and nothing else of the candidate. The answer
must consist of values that they wrote there, and they must have been given the problem's own values.
"""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import SessionError
from torchstone.kernels.verdicts.said import UNANSWERED, both, error_text
from torchstone.kernels.verdicts.verdict import GateResult

GATE = Gate(
    name="origin",
    order=97,
    title=Text("The answer is the kernels' own", "结果出自内核"),
    why=Text(
        "What is counted in the candidate's process its own code can change; what a kernel writes in "
        "another process it cannot.",
        "候选进程中的统计可能被其自身代码改动；内核在另一个进程中写出的值则不会。",
    ),
    remedy=Text(
        "give the kernels the inputs and weights as they are, and return what they wrote",
        "把输入和权重原样交给内核，并返回内核写出的值",
    ),
    needs_all=True,
    implementations=("triton", "numba", "c"),
    problem="relu",
    good={
        "numba": """import numba
import torch


@numba.njit
def relu(x, y):
    for i in range(x.size):
        y[i] = 0.0 if x[i] < 0.0 else x[i]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu(x.view(-1).numpy(), y.view(-1).numpy())
        return y
""",
    },
    bad={},
)


@GATE.check
def check(run: Run) -> GateResult:
    chosen = [call for call in run.main.own if call.right]
    if not chosen:
        return GateResult(GATE.name, "skipped", UNANSWERED)
    case = run.as_case(min(chosen, key=lambda call: sum(call.sizes)))
    try:
        session, answer = run.open({})
        if "error" not in answer:
            answer = run.build(session, case["seed"])
        if "error" in answer:
            return _undecided("the candidate does not load again")
        call = run.call(session, case, record_launches=True)
        session.end(late=True)
        if call.ended is not None or call.error is not None or not call.right:
            return _undecided("the recorded call did not end well")
        return _judged(run, call)
    except SessionError as error:
        return _undecided(error.ended.reason)


def _judged(run: Run, call: Call) -> GateResult:
    reply = call.reply
    if reply["trouble"]:
        return _undecided(reply["trouble"])
    if not reply["recorded"]:
        return _undecided("no launch was recorded")
    memory = call.records[int(reply["recorded_from"]) - len(call.answer_data) :]
    told = _launched_again(run, reply["recorded"], memory)
    if isinstance(told, str):
        return _undecided(told)
    launches, buffers = told
    answer = reply["tree"]["leaves"]
    facts, _ = run.ask_referee(
        "origin", [*buffers, *call.answer_data], number=call.number, launches=launches,
        answer=answer, start=len(buffers),
    )  # fmt: skip
    if "launch" in facts:
        kernel = reply["recorded"][facts["launch"]]["kernel"]
        what = both(
            "launch {n} ({kernel}) is given {count} values that are neither inputs nor weights nor "
            "written by a kernel before it",
            "第 {n} 次启动（{kernel}）收到 {count} 个既非输入、权重，也非之前内核写出的值",
            n=facts["launch"] + 1, kernel=kernel, count=facts["values"],
        )  # fmt: skip
        return GateResult(GATE.name, "failed", what)
    if "output" in facts:
        what = both("output {n} holds {count} values that no kernel wrote",
                    "输出 {n} 含有 {count} 个并非由内核写出的值",
                    n=facts["output"], count=facts["values"])  # fmt: skip
        return GateResult(GATE.name, "failed", what)
    return GateResult(GATE.name, "passed")


def _launched_again(
    run: Run, recorded: list[dict[str, Any]], memory: list[bytes]
) -> tuple[list[dict[str, Any]], list[bytes]] | str:
    """Every launch with its arguments before and after, or why one cannot be repeated."""
    session, answer = run.open_kernels()
    if "error" in answer:
        return "the kernels do not load on their own"
    launches: list[dict[str, Any]] = []
    buffers: list[bytes] = list(memory)
    for item in recorded:
        told, data = session.ask({"do": "launch", **item}, memory, seconds=run.timeout_seconds)
        if "error" in told:
            return f"{item['kernel']} cannot be launched on its own: {error_text(told['error'])}"
        before = [*item["args"], *item["kwargs"].values()]
        moved = {number: len(buffers) + i for i, number in enumerate(told["memory"])}
        buffers += data[: len(moved)]
        after = [{**tree, "memory": moved[tree["memory"]]} for tree in before if "memory" in tree]
        returned = _shifted(told["returned"], len(buffers))
        buffers += data[len(moved) :]
        launches.append({"before": before, "after": [*after, returned]})
    session.end(late=True)
    return launches, buffers


def _shifted(tree: dict[str, Any], start: int) -> dict[str, Any]:
    """A value whose buffers stand later in the message."""
    if "buffer" in tree:
        return {**tree, "buffer": tree["buffer"] + start}
    return {
        kind: [_shifted(item, start) for item in value] if kind in ("list", "tuple") else value
        for kind, value in tree.items()
    }


def _undecided(why: str) -> GateResult:
    said = both("could not be decided outside of the candidate's process: {why}",
                "无法在候选进程之外判定：{why}", why=why)  # fmt: skip
    return GateResult(
        GATE.name, "gap", said, close="launch the kernels at the top of the file, on arrays"
    )
