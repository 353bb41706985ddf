"""The referee's process: it holds the problem and judges; no candidate's code ever runs in it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.inputs.slender import SlenderPlanner
from torchstone.kernels.harness.inputs.strides import LAYOUTS, laid_out
from torchstone.kernels.harness.judging import judge
from torchstone.kernels.harness.judging.choices import chosen_places
from torchstone.kernels.harness.judging.diagnosis import causes_of
from torchstone.kernels.harness.judging.form_faults import form_faults
from torchstone.kernels.harness.judging.full_size_desk import FullSize
from torchstone.kernels.harness.judging.launches_judged import origin_of, twin
from torchstone.kernels.harness.judging.mode_answers import evaluated, judge_state, modes
from torchstone.kernels.harness.judging.settings import settings, ways
from torchstone.kernels.harness.judging.trivial_kernels import probe
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    state_of,
)
from torchstone.kernels.harness.shared_arrays import Mapped
from torchstone.kernels.harness.values import decode, encode, plain_place
from torchstone.kernels.sessions.calls import WRONG

_MOST_EXPLAINED = 4
"""Wrong outputs of which the cause is looked for: an author begins with the first."""
_WRITES = 20
"""Fills of memory of which the fastest counts."""


class Referee(SlenderPlanner):
    """One problem, its cases, and the judgement of answers to them."""

    _explained = 0
    full: FullSize

    def inputs(self, number: int) -> tuple[dict[str, Any], list[bytes]]:
        """The inputs of one case, in its layout."""
        case = self.cases[number]
        buffers: list[bytes] = []
        tree = encode(case.inputs, buffers)
        if case.layout in LAYOUTS:
            tree = laid_out(tree, case.layout, case.seed)
        return {"tree": tree, "seed": case.seed}, buffers

    def swapped(self, number: int) -> tuple[dict[str, Any], list[bytes]]:
        """A new case: the same inputs with two inner elements of each array exchanged; where that changes nothing in
        the answer (a maximum, a sum), the numbers of another draw in their place."""
        case = self.cases[number]
        shapes = families.shapes_of(case.inputs)
        others = [
            item.inputs for item in self.cases if item.family == "own" and item.seed != case.seed
        ]
        drawn = [item for item in others if families.shapes_of(item) == shapes]
        differs = False
        for made in (families.changed(case.inputs, families.exchanged), *drawn):
            self._add("own", case.seed, made)
            differs = self._moved(case, self.cases[-1])
            if differs:
                break
        header, buffers = self.inputs(len(self.cases) - 1)
        return {**header, "number": len(self.cases) - 1, "differs": differs}, buffers

    def _moved(self, case: Case, other: Case) -> bool:
        """Whether the right answer to one case is wrong for the other."""
        allowed = self.allowed(case, 0)
        return any(
            bool(((a.exact - b.exact).abs() > allowed * a.unit).any())
            if a.reference.is_floating_point()
            else not torch.equal(a.reference, b.reference)
            for a, b in zip(other.answers, case.answers, strict=True)
        )

    def allowed(self, case: Case, output: int) -> float:
        """How many units an output may be off."""
        dtype = case.answers[output].reference.dtype
        own, length = self.own_error(case), self.length(case)
        return self.oracle.allowed(own, self.reduced_error, dtype, length)

    def _least_allowed(self, case: Case, output: int) -> float:
        """So many units are allowed whatever the reference's own error and the length of sums are."""
        dtype = case.answers[output].reference.dtype
        length = case.length or int(case.family in families.LONGER)
        return self.oracle.allowed(0.0, self.reduced_error, dtype, length)

    def judge(self, number: int, tree: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """What is wrong with an answer."""
        return self._judged(self.cases[number], tree, buffers)

    def _judged(self, case: Case, tree: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        if tree["structure"] != case.structure:
            return {"form": [{"what": "count", "got": tree["structure"], "want": case.structure}]}
        leaves = [decode(item, buffers, plain_place) for item in tree["leaves"]]
        form: list[dict[str, Any]] = []
        outputs: list[dict[str, Any]] = []
        causes: list[dict[str, Any]] = []
        tolerances = [0.0]
        for i, (leaf, about) in enumerate(zip(leaves, tree["leaves"], strict=True)):
            answer = case.answers[i]
            got = as_tensor(leaf)
            problems = form_faults(i, about, got, answer)
            form += problems
            if not problems and got is not None:
                tolerances.append(self._tolerance(case, i, got))
                outputs.append(self.judge_output(case, i, got, tolerances[-1]))
                causes += self._causes(case, i, got) if _is_wrong(outputs[-1]) else []
        return {
            "form": form,
            "outputs": outputs,
            "causes": causes,
            "allowed": max(tolerances),
        }

    def judge_output(
        self, case: Case, output: int, got: torch.Tensor, tolerance: float | None = None
    ) -> dict[str, Any]:
        """What is wrong with one output of the right form."""
        chosen = chosen_places(self, output, case, got)
        known = self._tolerance(case, output, got) if tolerance is None else tolerance
        return judge.judge_output(case, output, got, known, chosen)

    def _tolerance(self, case: Case, output: int, got: torch.Tensor) -> float:
        """How many units are allowed: a bound that suffices, and all that is known where none does."""
        answer = case.answers[output]
        least = self._least_allowed(case, output)
        while not judge.is_within(answer, got, least):
            if answer.runs is None or not answer.runs.once_more():
                return self.allowed(case, output)
        return least

    def _causes(self, case: Case, output: int, got: torch.Tensor) -> list[dict[str, Any]]:
        """Likely causes of a wrong output; looked for in the first few only."""
        self._explained += 1
        if self._explained > _MOST_EXPLAINED or case.poisoned:
            return []
        return causes_of(self.reference, case, output, got)

    def weights(self, seed: int) -> tuple[dict[str, Any], list[bytes]]:
        """What a candidate is made with: arguments, and weights by name, as no call has changed them."""
        buffers: list[bytes] = []
        tree = {"init": encode(self.reference.arguments(seed), buffers),
                "state": encode(state_of(self.reference.made(seed)), buffers),
                "evaluate": self.reference.evaluates}  # fmt: skip
        return tree, buffers

    def probes(self) -> dict[str, Any]:
        """Which trivial kernels the problem's own inputs would let pass, and the families not."""
        return probe(self.cases, lambda case: self.allowed(case, 0))


def speed(size: int) -> dict[str, Any]:
    """Bytes a second that this machine writes into memory of this size, one thread."""
    buffer = torch.empty(max(size, 1), dtype=torch.uint8)
    best = float("inf")
    for _ in range(_WRITES):
        start = time.perf_counter()
        buffer.fill_(1)
        best = min(best, time.perf_counter() - start)
    return {"bytes_per_second": buffer.numel() / max(best, 1e-9)}


def _is_wrong(facts: dict[str, Any]) -> bool:
    return any(kind in facts for kind in WRONG)


def serve(channel: socket.socket, walls: dict[str, str], shared: tuple[int, ...] = ()) -> None:
    """Answer the parent until it hangs up."""

    def opened(header: dict[str, Any]) -> Referee:
        referee = Referee(header["source"], header["framework"], header["seeds"])
        referee.full = FullSize(referee, Mapped(shared), int(header["memory_bytes"]))
        return referee

    serving.serve(channel, walls, opened, _answer, fault="problem_error")


def _answer(referee: Referee, header: dict[str, Any], buffers: list[bytes]) -> Any:
    return _ANSWERS[header["do"]](referee, header, buffers)


_ANSWERS: dict[str, Callable[[Referee, dict[str, Any], list[bytes]], Any]] = {
    "load": lambda it, header, _: it.load(int(header["most_elements"])),
    "plan": lambda it, header, _: it.plan(
        int(header["level"]), int(header["size_level"]), int(header["most"])
    ),
    "larger": lambda it, header, _: it.larger(int(header["level"]), int(header["long"])),
    "lengths": lambda it, header, _: it.lengths(int(header["longest"])),
    "slender": lambda it, header, _: it.slender(int(header["beyond"])),
    "own_small": lambda it, header, _: it.own_small(int(header["level"])),
    "inputs": lambda it, header, _: it.inputs(int(header["number"])),
    "swapped": lambda it, header, _: it.swapped(int(header["number"])),
    "judge": lambda it, header, data: it.judge(int(header["number"]), header["tree"], data),
    "weights": lambda it, header, _: it.weights(int(header["seed"])),
    "probes": lambda it, *_: it.probes(),
    "full_measure": lambda it, header, _: it.full.measure(
        int(header["most_bytes"]), int(header["most_calls"])
    ),
    "full_fill": lambda it, header, _: it.full.fill(list(map(int, header["seeds"]))),
    "full_answer": lambda it, *_: it.full.answer(),
    "full_judge": lambda it, header, _: it.full.judge(header["about"], bool(header["partial"])),
    "full_room": lambda it, *_: it.full.room(),
    "full_timed": lambda it, header, _: it.full.timed(int(header["calls"])),
    "full_exchanged": lambda it, header, _: it.full.exchanged(int(header["calls"])),
    "full_check": lambda it, header, _: it.full.check(int(header["which"])),
    "speed": lambda _, header, __: speed(int(header["bytes"])),
    "twin": lambda it, header, _: twin(it, int(header["number"])),
    "origin": origin_of,
    "ways": lambda it, *_: ways(it),
    "settings": lambda it, *_: settings(it),
    "modes": lambda it, *_: modes(it),
    "evaluated": lambda it, header, _: evaluated(
        it, int(header["number"]), list(header["trained"])
    ),
    "judge_state": lambda it, header, data: judge_state(
        it, list(header["trained"]), header["tree"], data
    ),
}
"""What can be asked."""
