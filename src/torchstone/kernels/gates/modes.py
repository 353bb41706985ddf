"""Modes and state: what `eval()` changes, and what a call leaves behind in the buffers."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.text import Text
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.messages.facts import PlannedCase, Told
from torchstone.kernels.messages.to_candidate import CallOptions, State, TellState
from torchstone.kernels.messages.to_referee import (
    EvaluateCase,
    FindModes,
    JudgeState,
    Modes,
    WrongState,
)
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Session, SessionError
from torchstone.kernels.verdicts.said import call_trouble, joined, wrong_text

_PROBLEM = """import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(16, 8)]


def get_init_inputs():
    return [8]
"""
GATE = Gate(
    name="modes",
    order=74,
    title=Text("Training, evaluation and running statistics", "训练、评估与运行统计量"),
    why=Text(
        "A layer such as BatchNorm answers otherwise in eval(), and updates its statistics in "
        "training: a kernel that knows one mode only breaks the model in the other.",
        "BatchNorm 一类的层在 eval() 下结果不同，并在训练中更新统计量：只支持一种模式的内核会在另一种模式下破坏模型。",
    ),
    remedy=Text(
        "branch on self.training, use the running statistics in eval() and update them in training",
        "按 self.training 区分：eval() 时使用运行统计量，训练时更新它们",
    ),
    problem=_PROBLEM,
    good={
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels)

    def forward(self, x):
        n = self.norm
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                n.running_mean.lerp_(mean, n.momentum)
                n.running_var.lerp_(x.var(0), n.momentum)
                n.num_batches_tracked.add_(1)
        else:
            mean, var = n.running_mean, n.running_var
        return (x - mean) / torch.sqrt(var + n.eps) * n.weight + n.bias
""",
    },
    bad={
        "torch": """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(channels)

    def forward(self, x):
        n = self.norm
        mean, var = x.mean(0), x.var(0, correction=0)
        return (x - mean) / torch.sqrt(var + n.eps) * n.weight + n.bias
""",
    },
)


@GATE.check
def check(run: Run) -> GateResult:
    facts = run.ask_referee(FindModes(), Modes)
    only = run.facts.evaluated
    if only:  # all other gates looked at evaluation
        facts = replace(facts, evaluates=False)
    if not facts.evaluates and not facts.changed:
        return _only_evaluated(only) if only else _has_none()
    if not run.main.named:
        return _undecided("its weights cannot be matched with the problem's")
    try:
        found = _lived(run, facts)
    except SessionError as error:
        return _undecided(error.ended.reason)
    if found:
        return GateResult(GATE.name, "failed", joined(found, 3))
    return _only_evaluated(only) if only else GateResult(GATE.name, "passed")


def _has_none() -> GateResult:
    return GateResult(GATE.name, "skipped", Text("it has none", "没有模式或状态"))


def _only_evaluated(why: str) -> GateResult:
    """In training no two answers of the reference are alike."""
    said = {
        "chance": Text("in training the reference draws its answer at random (dropout): judged in eval() only",
                       "参考在训练模式下随机产生结果（如 dropout）：只在 eval() 下评判"),
        "state": Text("in training every call of the reference changes the next answer: answers were judged "
                      "in eval() only, and in training what a call leaves in the buffers",
                      "参考在训练模式下每次调用都会改变下一次的结果：结果只在 eval() 下评判，"
                      "训练时只比较调用后留在缓冲区中的值"),
    }[why]  # fmt: skip
    return GateResult(GATE.name, "gap", said,
                      close=Text("pass the random numbers or the state in get_inputs to compare training",
                                 "若要比较训练模式，请在 get_inputs 中传入随机数或状态"))  # fmt: skip


def _lived(run: Run, facts: Modes) -> list[Text]:
    """A model's life in one process: evaluation, training, what training left behind, evaluation at
    other sizes, more training, evaluation again. What is kept from one stage is wrong in the next."""
    session, _ = run.open_and_build()
    trained: list[int] = []
    found = _evaluated(run, session, facts, 0, trained)
    for case in facts.trained:
        found += _trained(run, session, facts, case, trained)
    others = [] if run.own_sizes else facts.others
    for number in (*others, 0):
        found += _evaluated(run, session, facts, number, trained)
    session.end(late=True)
    return found


def _evaluated(
    run: Run, session: Session, facts: Modes, number: int, trained: list[int]
) -> list[Text]:
    """The answer in eval(), where the reference's own is another one."""
    if not facts.evaluates:
        return []
    case = run.ask_referee(EvaluateCase(number, trained), PlannedCase)
    call = run.call(session, case, CallOptions(evaluate=True))
    if call.refused:
        return []
    trouble = call_trouble(call)
    return [_in_eval(text) for text in ([trouble] if trouble else wrong_text(call)[:1])]


def _in_eval(text: Text) -> Text:
    return Text(f"in eval(): {text.en}", f"eval() 模式下：{text.zh}")


def _trained(
    run: Run, session: Session, facts: Modes, case: PlannedCase, trained: list[int]
) -> list[Text]:
    """The buffers after one more call in training, where the reference changes them."""
    trained.append(case.number)
    call = run.call(session, case, CallOptions(evaluate=False))
    if not facts.changed or call.ended is not None or call.error is not None:
        return []
    state, data = session.ask(TellState(0), State, seconds=run.timeout_seconds)
    if isinstance(state, Told):
        return [Text(f"its state is not told: {state.text}", f"无法读取其状态：{state.text}")]
    judged = run.ask_referee(JudgeState(state.tree, trained), WrongState, data)
    count = len(trained)
    return [
        Text(f"after {count} calls in training {name} is not what the reference leaves",
             f"训练模式下调用 {count} 次后，{name} 与参考留下的值不同")
        for name in judged.wrong
    ]  # fmt: skip


def _undecided(why: str) -> GateResult:
    said = Text(f"eval() and running statistics were not compared: {why}",
                f"未比较 eval() 与运行统计量：{why}")  # fmt: skip
    return GateResult(
        GATE.name,
        "gap",
        said,
        close=Text(
            "name the weights as the problem's Model does", "权重的名称应与问题的 Model 一致"
        ),
    )
