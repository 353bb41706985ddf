"""The referee's process: it holds the problem and judges; no candidate's code ever runs in it."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.inputs.enlarging import plan_larger, plan_lengths
from torchstone.kernels.harness.inputs.planning import (
    Plan,
    add_case,
    load_plan,
    open_plan,
    plan_own_small,
)
from torchstone.kernels.harness.inputs.sizing import plan_families
from torchstone.kernels.harness.inputs.slender import plan_slender
from torchstone.kernels.harness.inputs.strides import LAYOUTS, laid_out
from torchstone.kernels.harness.judging.diagnosis import causes_of
from torchstone.kernels.harness.judging.form_faults import form_faults
from torchstone.kernels.harness.judging.full_size_desk import FullSize
from torchstone.kernels.harness.judging.launches_judged import judge_origin, make_twin
from torchstone.kernels.harness.judging.mode_answers import evaluate_case, find_modes, judge_state
from torchstone.kernels.harness.judging.settings import find_settings, find_ways
from torchstone.kernels.harness.judging.tolerances import allowed_units, judge_output, tolerance_for
from torchstone.kernels.harness.judging.trivial_kernels import probe
from torchstone.kernels.harness.reference.running import as_tensor, state_of
from torchstone.kernels.harness.shared_arrays import Mapped
from torchstone.kernels.harness.values import decode, encode, plain_place
from torchstone.kernels.messages import to_referee as ask
from torchstone.kernels.messages.facts import Cause, Facts, FormFault, OutputFacts
from torchstone.kernels.messages.trees import AnswerTree

_MOST_EXPLAINED = 4
"""Wrong outputs of which the cause is looked for: an author begins with the first."""
_MOST_WRITTEN = 256 << 20
"""Bytes beyond every cache: more are written no faster, and there may be no room for them."""
_WRITES = 20
"""Fills of memory of which the fastest counts."""


@dataclass(slots=True)
class Referee:
    """A problem with its cases, the same at its own sizes, and how many wrong outputs were explained."""

    plan: Plan
    full: FullSize
    explained: int = 0


def give_inputs(plan: Plan, number: int) -> tuple[ask.GivenInputs, list[bytes]]:
    """The inputs of one case, in its layout."""
    case = plan.cases[number]
    buffers: list[bytes] = []
    tree = encode(case.inputs, buffers)
    if case.layout in LAYOUTS:
        tree = laid_out(tree, case.layout, case.seed)
    return ask.GivenInputs(tree, case.seed), buffers


def exchange_elements(plan: Plan, number: int) -> tuple[ask.GivenInputs, list[bytes]]:
    """A new case: the same inputs with two inner elements of each array exchanged; where that changes nothing in
    the answer (a maximum, a sum), the numbers of another draw in their place."""
    case = plan.cases[number]
    shapes = families.shapes_of(case.inputs)
    others = [item.inputs for item in plan.cases if item.family == "own" and item.seed != case.seed]
    drawn = [item for item in others if families.shapes_of(item) == shapes]
    differs = False
    for made in (families.changed(case.inputs, families.exchanged), *drawn):
        add_case(plan, "own", case.seed, made)
        differs = _answers_differ(plan, case, plan.cases[-1])
        if differs:
            break
    last = len(plan.cases) - 1
    given, buffers = give_inputs(plan, last)
    return ask.GivenInputs(given.tree, given.seed, last, differs), buffers


def _answers_differ(plan: Plan, case: Case, other: Case) -> bool:
    """Whether the right answer to one case is wrong for the other."""
    allowed = allowed_units(plan, case, 0)
    return any(
        bool(((a.exact - b.exact).abs() > allowed * a.unit).any())
        if a.reference.is_floating_point()
        else not torch.equal(a.reference, b.reference)
        for a, b in zip(other.answers, case.answers, strict=True)
    )


def judge_answer(referee: Referee, number: int, answer: AnswerTree, buffers: list[bytes]) -> Facts:
    """What is wrong with an answer."""
    plan = referee.plan
    case = plan.cases[number]
    if answer.structure != case.structure:
        return Facts([FormFault("count", answer.structure, case.structure)])
    form: list[FormFault] = []
    outputs: list[OutputFacts] = []
    causes: list[Cause] = []
    tolerances = [0.0]
    for i, tree in enumerate(answer.leaves):
        got = as_tensor(decode(tree, buffers, plain_place))
        faults = form_faults(i, tree, got, case.answers[i])
        form += faults
        if not faults and got is not None:
            tolerances.append(tolerance_for(plan, case, i, got))
            outputs.append(judge_output(plan, case, i, got, tolerances[-1]))
            causes += _find_causes(referee, case, i, got) if outputs[-1].is_wrong else []
    return Facts(form, outputs, causes, max(tolerances))


def _find_causes(referee: Referee, case: Case, output: int, got: torch.Tensor) -> list[Cause]:
    """Likely causes of a wrong output; looked for in the first few only."""
    referee.explained += 1
    if referee.explained > _MOST_EXPLAINED or case.poisoned:
        return []
    return causes_of(referee.plan.reference, case, output, got)


def give_weights(plan: Plan, seed: int) -> tuple[ask.Weights, list[bytes]]:
    """What a candidate is made with: arguments, and weights by name, as no call has changed them."""
    buffers: list[bytes] = []
    init = encode(plan.reference.arguments(seed), buffers)
    state = encode(state_of(plan.reference.made(seed)), buffers)
    return ask.Weights(init, state, plan.reference.evaluates), buffers


def measure_speed(size: int) -> ask.Speed:
    """Bytes a second that this machine writes into memory of this size, one thread."""
    buffer = torch.empty(min(max(size, 1), _MOST_WRITTEN), dtype=torch.uint8)
    best = float("inf")
    for _ in range(_WRITES):
        start = time.perf_counter()
        buffer.fill_(1)
        best = min(best, time.perf_counter() - start)
    return ask.Speed(buffer.numel() / max(best, 1e-9))


def serve(channel: socket.socket, walls: dict[str, str], shared: tuple[int, ...] = ()) -> None:
    """Answer the parent until it hangs up."""

    def opened(question: ask.OpenReferee) -> Referee:
        plan = open_plan(question.source, question.framework, question.seeds)
        return Referee(plan, FullSize(plan, Mapped(shared), question.memory_bytes))

    serving.serve(channel, walls, serving.Service({ask.OpenReferee: opened}, ANSWERS))


ANSWERS: serving.Answers[Referee] = {
    ask.LoadProblem: lambda it, q, _: load_plan(it.plan, q.most_elements),
    ask.PlanFamilies: lambda it, q, _: plan_families(it.plan, q.level, q.size_level, q.most),
    ask.PlanLarger: lambda it, q, _: plan_larger(it.plan, q.level, q.long),
    ask.PlanLengths: lambda it, q, _: plan_lengths(it.plan, q.longest),
    ask.PlanSlender: lambda it, q, _: plan_slender(it.plan, q.beyond),
    ask.PlanOwnSmall: lambda it, q, _: plan_own_small(it.plan, q.level),
    ask.GiveInputs: lambda it, q, _: give_inputs(it.plan, q.number),
    ask.ExchangeElements: lambda it, q, _: exchange_elements(it.plan, q.number),
    ask.JudgeAnswer: lambda it, q, data: judge_answer(it, q.number, q.answer, data),
    ask.GiveWeights: lambda it, q, _: give_weights(it.plan, q.seed),
    ask.FindProbes: lambda it, *_: probe(
        it.plan.cases, lambda case: allowed_units(it.plan, case, 0)
    ),
    ask.MeasureFull: lambda it, q, _: it.full.measure(q.most_bytes, q.most_calls),
    ask.FillFull: lambda it, q, _: it.full.fill(q.seeds),
    ask.AnswerFull: lambda it, q, _: it.full.answer() if q.judged else it.full.room(),
    ask.JudgeFull: lambda it, q, _: it.full.judge(q.answer, q.partial),
    ask.CheckFull: lambda it, q, _: it.full.check(q.which),
    ask.TimeReference: lambda it, q, _: it.full.timed(q.calls),
    ask.TimeExchange: lambda it, q, _: it.full.exchanged(q.calls),
    ask.MeasureSpeed: lambda _, q, __: measure_speed(q.bytes),
    ask.MakeTwin: lambda it, q, _: make_twin(it.plan, q.number),
    ask.JudgeOrigin: lambda it, q, data: judge_origin(it.plan, q, data),
    ask.FindWays: lambda it, *_: find_ways(it.plan),
    ask.FindSettings: lambda it, *_: find_settings(it.plan),
    ask.FindModes: lambda it, *_: find_modes(it.plan),
    ask.EvaluateCase: lambda it, q, _: evaluate_case(it.plan, q.number, q.trained),
    ask.JudgeState: lambda it, q, data: judge_state(it.plan, q.trained, q.tree, data),
}
"""What can be asked."""
