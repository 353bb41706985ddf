"""The problem's own inputs at their own sizes: one answer of the reference, and the judgement of another.

Large answers are judged in two ways. Some slices (first and last, next to the edges of tiles, random ones)
are computed once more in double precision, by running the problem on those slices alone, and judged like
any case. Everything else is compared with what the reference gives in its own format; what differs there
by more than rounding explains is a slice to look at, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from torchstone.kernels.harness.calling.unwritten import leaves_a_trace, never_written
from torchstone.kernels.harness.inputs.cases import Case, kind_of, structure_of
from torchstone.kernels.harness.inputs.planning import Plan, count_elements
from torchstone.kernels.harness.judging.block_sums import Kept, keep_output
from torchstone.kernels.harness.judging.form_faults import form_faults
from torchstone.kernels.harness.judging.slices import (
    Slicing,
    cut_output,
    find_slicing,
    sampled_rows,
)
from torchstone.kernels.harness.judging.tolerances import allowed_units, judge_output
from torchstone.kernels.harness.reference.perturbations import rounding
from torchstone.kernels.harness.reference.running import Values, as_tensor, leaves_of
from torchstone.kernels.harness.values import dtype_of
from torchstone.kernels.messages.facts import Facts, FormFault, OutputFacts, Wrong
from torchstone.kernels.messages.trees import AnswerTree, Tree

_MOST_SLICED = 1 << 24
"""Elements of inputs in all slices together: their answers in double precision take a second or so."""
_MOST_ROWS = 16
_MOST_DOUBTED = 8
"""Slices with doubtful elements that are run again: where eight are right, the bound was too narrow."""
_WIDER = 4.0
"""What a value may be off where only the reference's own format is known: rounding of both, twice."""
_MOST_IN_DOUBLE = 1 << 27
"""Elements of the largest step in double precision: with nine runs of it, a minute or so."""
_STEPS_ALIVE = 5
"""Tensors of that size that are alive at a time, some of them inside of a library."""
_DOUBLE_COPIES = 12
"""Bytes for each byte of input when all of it is run in double precision and perturbed."""


@dataclass(slots=True)
class Plain:
    """One output of the reference, as `form_faults` wants it."""

    reference: torch.Tensor
    kind: str

    @property
    def stride(self) -> tuple[int, ...]:
        return tuple(self.reference.stride())


@dataclass(slots=True)
class FullAnswer:
    """What is known of the right answer at the problem's own sizes."""

    forms: list[Plain]
    structure: object
    kept: list[Kept]
    slicing: Slicing | None
    rows: list[int]
    case: Case | None
    """The slices, or all of it, with answers in double precision; None where neither was possible."""
    tolerances: list[float]
    """Per output: what an element may be off anywhere, before it is looked at more closely."""

    @property
    def how(self) -> str:
        if self.case is None:
            return "own format"
        return "slices" if self.slicing is not None else "double"


def answer_in_full(plan: Plan, inputs: Values, budget_bytes: int) -> FullAnswer:
    """Run the reference at its own size, and keep of the answer what judging another needs."""
    raw = plan.reference.run_once(inputs)
    leaves = leaves_of(raw)
    outputs = [item for item in map(as_tensor, leaves) if item is not None]
    forms = [
        Plain(torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device="meta"),
              kind_of(leaf))
        for item, leaf in zip(outputs, leaves, strict=True)
    ]  # fmt: skip
    slicing = find_slicing(plan.reference, inputs, outputs)
    rows: list[int] = []
    case: Case | None = None
    if slicing is not None:
        rows = sampled_rows(slicing.count, _affordable(inputs, slicing))
        case = _case(plan, slicing.of_inputs(inputs, rows))
    elif _fits_in_double(plan, inputs, budget_bytes):
        case = _case(plan, inputs)
    found = FullAnswer(forms, structure_of(raw), [], slicing, rows, case, [])
    found.tolerances = [_tolerance(plan, found, i, item, inputs) for i, item in enumerate(outputs)]
    del raw, leaves
    spare = budget_bytes // 8
    while (
        outputs
    ):  # one after the other, so that the whole answer does not stay beside what is kept
        item = outputs.pop(0)
        found.kept.append(keep_output(item, spare))
        spare -= found.kept[-1].size_bytes
    return found


def _affordable(inputs: Values, slicing: Slicing) -> int:
    """Rows whose elements, with what is not sliced, are few enough."""
    each, rest = slicing.elements(inputs)
    return max(1, min(_MOST_ROWS, (_MOST_SLICED - rest) // max(each, 1)))


def _case(plan: Plan, inputs: Values) -> Case | None:
    """The answer in double precision; None where that does not fit into memory."""
    try:
        case = plan.oracle.case(-1, "own", 0, inputs)
        case.length = plan.oracle.length_of(inputs, 0)
        for answer in case.answers:
            _ = answer.unit  # all runs are made here, where it is known what to do without them
    except (MemoryError, RuntimeError):
        return None
    return case


def _fits_in_double(plan: Plan, inputs: Values, budget_bytes: int) -> bool:
    """Whether all of it can be run in double precision, and perturbed."""
    if _bytes_of(inputs) * _DOUBLE_COPIES >= budget_bytes:
        return False
    largest = plan.reference.largest_step(inputs)
    return largest <= _MOST_IN_DOUBLE and 8 * _STEPS_ALIVE * largest < budget_bytes


def _bytes_of(inputs: Values) -> int:
    tensors = [item for item in map(as_tensor, leaves_of(inputs)) if item is not None]
    return sum(item.numel() * item.element_size() for item in tensors)


def _tolerance(
    plan: Plan, found: FullAnswer, index: int, output: torch.Tensor, inputs: Values
) -> float:
    if not output.is_floating_point():
        return 0.0
    if found.case is not None:
        answer = found.case.answers[index]
        units = allowed_units(plan, found.case, index) * answer.unit
        return _WIDER * float(units.max()) if units.numel() else 0.0
    # every output may be a sum of all inputs
    length = min(count_elements(inputs) // max(output.numel(), 1) + 1, 1 << 16)
    largest = max((float(part.abs().nan_to_num().max()) for part in _parts(output)), default=0.0)
    return _WIDER * (8 + 2 * math.sqrt(length)) * rounding(output.dtype) * largest


def _parts(tensor: torch.Tensor, count: int = 1 << 22) -> Iterator[torch.Tensor]:
    return iter(tensor.reshape(-1).split(count)) if tensor.numel() else iter(())


def judge_in_full(
    plan: Plan, right: FullAnswer, about: AnswerTree, outputs: Sequence[torch.Tensor],
    inputs: Values, partial: bool = False,
) -> Facts:  # fmt: skip
    """What is wrong with an answer at the problem's own sizes; of a part of one, with what was written."""
    if about.structure != right.structure:
        return Facts([FormFault("count", about.structure, right.structure)], how=right.how)
    form = [
        fault
        for i, (leaf, plain) in enumerate(zip(about.leaves, right.forms, strict=True))
        for fault in form_faults(i, leaf, _without_elements(leaf), plain)
    ]
    if form or (partial and not all(leaves_a_trace(output.dtype) for output in outputs)):
        return Facts(form, how=right.how)
    facts = [OutputFacts() if partial else _unwritten(output) for output in outputs]
    if not any(item.is_wrong for item in facts):
        facts = _judge_slices(plan, right, outputs, right.rows, partial=partial)
    if not partial and not any(item.is_wrong for item in facts):
        facts = _judge_rest(plan, right, outputs, inputs, facts)
    return Facts(outputs=facts, how=right.how, rows=len(right.rows))


def _without_elements(leaf: Tree) -> torch.Tensor | None:
    if not leaf.dtype:
        return None
    return torch.empty(leaf.shape, dtype=dtype_of(leaf.dtype), device="meta")


def _unwritten(output: torch.Tensor) -> OutputFacts:
    """Elements that hold what the memory held before."""
    first, last, count, start = -1, -1, 0, 0
    for part in _parts(output):
        found = never_written(part).nonzero()
        if found.numel():
            first = start + int(found[0]) if first < 0 else first
            last = start + int(found[-1])
            count += len(found)
        start += part.numel()
    if not count:
        return OutputFacts()
    index, end = _index(first, output.shape), _index(last, output.shape)
    return OutputFacts(unwritten=Wrong(index, count, output.numel(), "nan", "nan", last=end))


def _index(flat: int, shape: torch.Size) -> list[int]:
    found = []
    for size in reversed(shape):
        flat, place = divmod(flat, max(size, 1))
        found.append(place)
    return found[::-1]


def _judge_slices(
    plan: Plan, right: FullAnswer, outputs: Sequence[torch.Tensor], rows: list[int],
    case: Case | None = None, partial: bool = False,
) -> list[OutputFacts]:  # fmt: skip
    """The slices in double precision, or all of it where nothing was sliced."""
    case = case or right.case
    if case is None:
        return [OutputFacts() for _ in outputs]
    facts = []
    for i, output in enumerate(outputs):
        got = output
        if right.slicing is not None:
            got = cut_output(output, right.slicing.sides[i], rows)
        if partial:
            got = torch.where(never_written(got), case.answers[i].reference, got)
        found = judge_output(plan, case, i, got)
        facts.append(_placed(found, right.slicing, i, rows))
    return facts


def _placed(
    facts: OutputFacts, slicing: Slicing | None, output: int, rows: list[int]
) -> OutputFacts:
    """Places inside of slices as places of the whole output."""
    if slicing is None:
        return facts
    side = slicing.sides[output]

    def moved(wrong: Wrong | None) -> Wrong | None:
        if wrong is None:
            return None
        places = ([rows[n] if i == side else n for i, n in enumerate(place)]
                  for place in (wrong.index, wrong.last))  # fmt: skip
        index, last = places
        return replace(wrong, index=index, last=last)

    return replace(
        facts, unwritten=moved(facts.unwritten), pattern=moved(facts.pattern),
        whole=moved(facts.whole), error=moved(facts.error),
    )  # fmt: skip


def _judge_rest(
    plan: Plan, right: FullAnswer, outputs: Sequence[torch.Tensor], inputs: Values,
    facts: list[OutputFacts],
) -> list[OutputFacts]:  # fmt: skip
    """Everything else against the reference's own format."""
    for i, (output, kept) in enumerate(zip(outputs, right.kept, strict=True)):
        doubted = kept.doubtful(output, right.tolerances[i])
        if not doubted:
            continue
        if right.slicing is None:
            error = _off(kept, output, doubted[0], len(doubted), right.tolerances[i])
            facts[i] = replace(facts[i], error=error)
            continue
        side = right.slicing.sides[i]
        rows = sorted({_index(place, output.shape)[side] for place in doubted})[:_MOST_DOUBTED]
        case = _case(plan, right.slicing.of_inputs(inputs, rows))
        if case is not None:
            facts[i] = _judge_slices(plan, right, outputs, rows, case)[i]
    return facts


def _off(kept: Kept, output: torch.Tensor, place: int, count: int, tolerance: float) -> Wrong:
    """An element that no slice can say more of."""
    got = float(output.reshape(-1)[place])
    want = kept.value_at(place)
    unit = tolerance / _WIDER / 8 or rounding(torch.float32)
    units = abs(got - want) / unit if math.isfinite(got - want) else math.inf
    units = min(units, 1e30)
    return Wrong(
        _index(place, output.shape), count, output.numel(), repr(got), repr(want),
        here=units, units=units, allowed=tolerance / unit, map=[[1.0]],
    )  # fmt: skip
