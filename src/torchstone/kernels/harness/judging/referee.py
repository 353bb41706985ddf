"""The referee's process: it holds the problem and judges; no candidate's code ever runs in it."""

from __future__ import annotations

import copy
import socket
import time
from collections.abc import Callable
from typing import Any

import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.calling import bursts, weights
from torchstone.kernels.harness.calling.launch_records import revived_argument
from torchstone.kernels.harness.calling.timed_calls import answered
from torchstone.kernels.harness.inputs import families
from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.inputs.planning import REFUSED
from torchstone.kernels.harness.inputs.slender import SlenderPlanner, leading_group, stacked
from torchstone.kernels.harness.inputs.strides import LAYOUTS, laid_out
from torchstone.kernels.harness.judging import judge, origin
from torchstone.kernels.harness.judging.diagnosis import causes_of
from torchstone.kernels.harness.judging.form import form_faults
from torchstone.kernels.harness.judging.judge import Choice
from torchstone.kernels.harness.judging.probes import probe
from torchstone.kernels.harness.judging.reference import (
    as_tensor,
    doubled,
    leaves_of,
    like,
    rebuilt,
    state_of,
)
from torchstone.kernels.harness.values import decode, encode, plain_place
from torchstone.kernels.sessions.calls import WRONG

_OTHER_VALUES = ("negative",)
"""Families from which a second call in training is taken."""
_MOST_OTHER_SIZES = 4
"""Sizes that are changed for a call in evaluation."""
_ORDERS = 8
"""Orders of a line in which a reference that picks by position would have to pick alike by luck."""
_STATE_TOLERANCE = 1e-4
"""Of running statistics, absolute and relative: sums of a batch in single precision, any order."""
_MOST_EXPLAINED = 4
"""Wrong outputs of which the cause is looked for: an author begins with the first."""
_WRITES = 20
"""Fills of memory of which the fastest counts."""


class Referee(SlenderPlanner):
    """One problem, its cases, and the judgement of answers to them."""

    _fresh: list[list[Any]]
    _replies: list[Any]
    _explained = 0

    def inputs(self, number: int) -> tuple[dict[str, Any], list[bytes]]:
        """The inputs of one case, in its layout."""
        case = self.cases[number]
        buffers: list[bytes] = []
        tree = encode(case.inputs, buffers)
        if case.layout in LAYOUTS:
            tree = laid_out(tree, case.layout, case.seed)
        return {"tree": tree, "seed": case.seed}, buffers

    def swapped(self, number: int) -> tuple[dict[str, Any], list[bytes]]:
        """A new case: the same inputs with two inner elements of each array exchanged."""
        case = self.cases[number]
        made = families.changed(case.inputs, families.exchanged)
        self._add("own", case.seed, made)
        answers, others = self.cases[-1].answers, case.answers
        allowed = self._allowed(case, 0)
        differs = any(
            bool(((a.exact - b.exact).abs() > allowed * a.unit).any())
            if a.reference.is_floating_point()
            else not torch.equal(a.reference, b.reference)
            for a, b in zip(answers, others, strict=True)
        )
        header, buffers = self.inputs(len(self.cases) - 1)
        return {**header, "number": len(self.cases) - 1, "differs": differs}, buffers

    def _allowed(self, case: Case, output: int) -> float:
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
                chosen = self._chosen(i, case, got)
                tolerances.append(self._tolerance(case, i, got))
                outputs.append(judge.judge_output(case, i, got, tolerances[-1], chosen))
                causes += self._causes(case, i, got) if _is_wrong(outputs[-1]) else []
        return {
            "form": form,
            "outputs": outputs,
            "causes": causes,
            "allowed": max(tolerances),
        }

    def _tolerance(self, case: Case, output: int, got: torch.Tensor) -> float:
        """How many units are allowed: a bound that suffices, and all that is known where none does."""
        answer = case.answers[output]
        least = self._least_allowed(case, output)
        while not judge.is_within(answer, got, least):
            if answer.runs is None or not answer.runs.once_more():
                return self._allowed(case, output)
        return least

    def _causes(self, case: Case, output: int, got: torch.Tensor) -> list[dict[str, Any]]:
        """Likely causes of a wrong output; looked for in the first few only."""
        self._explained += 1
        if self._explained > _MOST_EXPLAINED or case.poisoned:
            return []
        return causes_of(self.reference, case, output, got)

    def _chosen(self, output: int, case: Case, got: torch.Tensor) -> torch.Tensor | None:
        """Where another place holds the same value as the reference's place, and may be given.

        None where rounding decides what is chosen.
        """
        leaves = leaves_of(case.inputs)
        for choice in self.choices:
            if choice.output != output:
                continue
            if self.ties_fixed:
                return torch.zeros(got.shape, dtype=torch.bool)
            values = families.tensor_of(leaves[choice.leaf])
            mine = judge.picked_by(values, got, choice.dim)
            right = judge.picked_by(values, case.answers[output].reference, choice.dim)
            if mine is None or right is None:
                return torch.zeros(got.shape, dtype=torch.bool)
            equal: torch.Tensor = mine == right
            if not bool(equal.all()):
                equal |= self._chosen_by_position(choice, case, mine)
            equal &= _distinct(got, choice.dim, mine.dim())
            return equal.reshape(got.shape)
        return None

    def _chosen_by_position(self, choice: Choice, case: Case, mine: torch.Tensor) -> torch.Tensor:
        """Where the candidate picks the extreme of the input and the reference picks by position.

        What it compares has become equal there, as probabilities that underflow to zero: with the
        line in another order it does not pick the same elements again.
        """
        leaves = leaves_of(case.inputs)
        leaf = leaves[choice.leaf]
        values = families.tensor_of(leaf)
        picked = case.answers[choice.output].reference
        moved = torch.zeros(mine.shape, dtype=torch.bool)
        for turn in range(_ORDERS):
            generator = torch.Generator().manual_seed(turn)
            order = torch.randperm(values.shape[choice.dim], generator=generator)
            leaves[choice.leaf] = like(leaf, values.index_select(choice.dim, order))
            given = list(rebuilt(case.inputs, leaves))
            found = self.oracle.outputs(given, case.seed)[choice.output]
            moved |= (order[found.long()] != picked).reshape(mine.shape)
        best = values.topk(mine.shape[choice.dim], dim=choice.dim, largest=choice.largest).values
        followed: torch.Tensor = (mine == best) & moved
        return followed

    def weights(self, seed: int) -> tuple[dict[str, Any], list[bytes]]:
        """What a candidate is made with: arguments, and weights by name, as no call has changed them."""
        buffers: list[bytes] = []
        tree = {"init": encode(self.reference.arguments(seed), buffers),
                "state": encode(state_of(self.reference.made(seed)), buffers),
                "evaluate": self.reference.evaluates}  # fmt: skip
        return tree, buffers

    def ways(self) -> dict[str, Any]:
        """In which ways the weights may change between calls, each with the seed of new ones.

        Only those after which the reference itself answers like a model made with them.
        """
        found = []
        if self.reference.state(weights.CHANGED):
            model = copy.deepcopy(self.reference.model(weights.CHANGED))
            for turn, way in enumerate(weights.WAYS):
                seed = (weights.CHANGED + 1 + turn) % self.seeds
                if self._follows(model, seed, way):
                    found.append({"way": way, "seed": seed})
        return {"ways": found}

    def settings(self) -> dict[str, Any]:
        """Under which settings a model may be called: those in which the reference stays as it is."""
        right, model = self.oracle.outputs(self.cases[0].inputs, 0), self.reference.model(0)
        found = []
        for name in bursts.SETTINGS:
            given = copy.deepcopy([(model, self.cases[0].inputs)])
            (answer,) = bursts.in_a_row(given, name)
            if isinstance(answer, Exception):
                continue
            mine = map(as_tensor, leaves_of(answer))
            if all(a is not None and torch.equal(a.nan_to_num(), b.nan_to_num())
                   for a, b in zip(mine, right, strict=True)):  # fmt: skip
                found.append(name)
        return {"settings": found}

    def _follows(self, model: Any, seed: int, way: str) -> bool:
        def answer(asked: Any) -> list[torch.Tensor | None]:
            return list(map(as_tensor, leaves_of(self.reference.run(asked, inputs))))

        inputs = self.reference.inputs(seed)
        state = {name: value.clone() for name, value in self.reference.state(seed).items()}
        try:
            if not weights.put(model, state, way):
                return False
            mine, right = answer(model), answer(self.reference.model(seed))
        except REFUSED:
            return False
        return all(
            a is not None and b is not None and torch.equal(a, b)
            for a, b in zip(mine, right, strict=True)
        )

    def probes(self) -> dict[str, Any]:
        """Which trivial kernels the problem's own inputs would let pass, and the families not."""
        return probe(self.cases, lambda case: self._allowed(case, 0))

    def fresh(self, seeds: list[int]) -> tuple[dict[str, Any], list[bytes]]:
        """Inputs that nobody has seen, one for each seed, to the weights of the first model."""
        self._fresh = [self._own_inputs(seed) for seed in seeds]
        buffers: list[bytes] = []
        cases = []
        for inputs in self._fresh:
            own: list[bytes] = []
            cases.append({"tree": encode(inputs, own), "start": len(buffers)})
            buffers += own
        return {"cases": cases, "seed": 0}, buffers

    def timed(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """The reference's answers to fresh inputs, as the candidate gives its own."""
        model = self.reference.model(0)
        call: Callable[..., Any] = model if callable(model) else model.forward
        self._replies = []

        def kept(*inputs: Any) -> Any:
            self._replies.append(call(*inputs))
            return self._replies[-1]

        return answered(header, buffers, kept)

    def exchanged(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """The same messages with nothing computed between them."""
        replies = iter(self._replies)
        return answered(header, buffers, lambda *_: next(replies))

    def judge_fresh(self, which: int, tree: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """What is wrong with the answer to one of the fresh inputs."""
        case = self.oracle.case(len(self.cases), "own", 0, self._fresh[which])
        return self._judged(case, tree, buffers)

    def twin(self, number: int) -> tuple[dict[str, Any], list[bytes]]:
        """A new case: the same but for the numbers of its arrays, which are those of another seed.

        Places and truths stay, from which a host may make sizes; where there is nothing else, they
        change, too. The number of the case is -1 where the reference does not take it.
        """
        case = self.cases[number]
        leaves = leaves_of(case.inputs)
        tensors = [as_tensor(leaf) for leaf in leaves]
        shapes = [item.shape if item is not None else None for item in tensors]
        moving = [i for i in families.arrays(case.inputs) if _is_number(tensors[i])]
        moving = moving or families.arrays(case.inputs)
        for other in self.cases:
            theirs = leaves_of(other.inputs)
            found = [as_tensor(leaf) for leaf in theirs]
            if other.family != "own" or other.seed == case.seed:
                continue
            if shapes == [item.shape if item is not None else None for item in found]:
                made = [theirs[i] if i in moving else leaf for i, leaf in enumerate(leaves)]
                break
        else:
            made = [_turned(leaf) if i in moving else leaf for i, leaf in enumerate(leaves)]
        try:
            self._add("own", case.seed, list(rebuilt(case.inputs, made)))
        except REFUSED:
            return {"number": -1}, []
        return {"number": len(self.cases) - 1}, []

    def origin(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Whether kernels wrote the answer, from what the case and its weights hold; with a twin,
        whether what they were given was moved there and not computed."""
        case = self.cases[int(header["number"])]
        inputs = [as_tensor(leaf) for leaf in leaves_of(case.inputs)]
        given = [*inputs, *state_of(self.reference.model(case.seed)).values()]
        given += [as_tensor(leaf) for leaf in leaves_of(self.reference.arguments(case.seed))]
        ignored = {(launch, place) for launch, place in header["ignored"]}
        launches = _launches(header["launches"], buffers, ignored)
        answer = [
            decode(item, buffers[header["start"] :], plain_place) for item in header["answer"]
        ]
        known = [item for item in given if item is not None]
        found = origin.unexplained(known, launches, answer)
        if found or not header["twins"]:
            return found
        twin = self.cases[int(header["twin"])]
        others = [as_tensor(leaf) for leaf in leaves_of(twin.inputs)]
        pairs = [
            (a, b) for a, b in zip(inputs, others, strict=True) if a is not None and b is not None
        ]
        moved = any(_is_number(a) for a, b in pairs if not torch.equal(a, b))
        twins = _launches(header["twins"], buffers, ignored)
        most = 0 if moved else origin.MOST_FOREIGN
        found = origin.computed_outside(pairs, list(zip(launches, twins, strict=True)), most)
        return found | ({"computed": True} if found else {})

    def modes(self) -> dict[str, Any]:
        """Whether eval() gives another answer, and what a call in training leaves changed."""
        model = self._in_training(copy.deepcopy(self.reference.model(0)))
        if not isinstance(model, torch.nn.Module) or not model.training:
            return {"evaluates": False, "changed": [], "trained": [], "others": []}
        before = {name: value.clone() for name, value in state_of(model).items()}
        inputs = self.cases[0].inputs
        trained = leaves_of(self.reference.run(model, inputs))
        changed = [k for k, v in state_of(model).items() if not torch.equal(v, before[k])]
        evaluated = leaves_of(self.reference.run(model.eval(), inputs))
        pairs = [(as_tensor(a), as_tensor(b)) for a, b in zip(trained, evaluated, strict=True)]
        differs = any(a is not None and b is not None and not torch.equal(a, b) for a, b in pairs)
        mine = {item.family: item.number for item in reversed(self.cases) if item.seed == 0}
        trained_on = [0, *(mine[name] for name in _OTHER_VALUES if name in mine)]
        return {
            "evaluates": differs, "changed": changed,
            "trained": [self._list(number)[0] for number in trained_on],
            "others": self._other_sizes(),
        }  # fmt: skip

    def _in_training(self, model: Any) -> Any:
        """The model as the problem makes it, where all else is judged in evaluation."""
        return model.train() if self.reference.evaluates else model

    def _other_sizes(self) -> list[int]:
        """Cases in which one of the problem's sizes after the other is smaller."""
        found = []
        inputs = self.cases[0].inputs
        for group in families.groups_of(inputs)[:_MOST_OTHER_SIZES]:
            size = families.prime_below(group.size)
            if self._add_resized("prime", 0, families.resized(inputs, group, size)):
                found.append(len(self.cases) - 1)
        batch = leading_group(inputs)
        if batch is not None:  # too small to be cut
            wider = stacked(inputs, [self._own_inputs(1)], batch, batch.size + 1)
            if self._add_resized("prime", 0, wider):
                found.append(len(self.cases) - 1)
        return found

    def evaluated(self, number: int, trained: list[int]) -> dict[str, Any]:
        """A new case: the inputs of a case to the model in evaluation, after calls in training."""
        kept = dict(self.reference._models)
        case = self.cases[number]
        try:
            for double in (False, True):
                model = copy.deepcopy(self.reference.model(0, double))
                model.load_state_dict(self._first_state(model))
                self._train(model, trained, double)
                self.reference._models[0, double] = model.eval()
            self._add("own", 0, case.inputs)
        finally:
            self.reference._models.update(kept)
        self.cases[-1].resized = case.resized
        return self._list(len(self.cases) - 1)[0]

    def _train(self, model: Any, trained: list[int], double: bool = False) -> None:
        for number in trained:
            inputs = self.cases[number].inputs
            self.reference.run(model, doubled(inputs) if double else inputs, double=double)

    def _first_state(self, model: Any) -> dict[str, Any]:
        """Weights and buffers as they are made, before any call, in the model's own formats."""
        made = self.reference.made(0).state_dict()
        now = model.state_dict()
        return {name: value.to(now[name].dtype) for name, value in made.items()}

    def judge_state(
        self, trained: list[int], tree: dict[str, Any], buffers: list[bytes]
    ) -> dict[str, Any]:
        """Names of the buffers that these calls in training should have changed otherwise."""
        model = self._in_training(self.reference.made(0))
        self._train(model, trained)
        right, got = state_of(model), decode(tree, buffers, plain_place)
        return {"wrong": [
            name for name, value in right.items()
            if name not in got or not torch.allclose(got[name].double(), value.double(),
                                                     rtol=_STATE_TOLERANCE, atol=_STATE_TOLERANCE)
        ]}  # fmt: skip

    def speed(self, size: int) -> dict[str, Any]:
        """Bytes a second that this machine writes into memory of this size, one thread."""
        buffer = torch.empty(max(size, 1), dtype=torch.uint8)
        best = float("inf")
        for _ in range(_WRITES):
            start = time.perf_counter()
            buffer.fill_(1)
            best = min(best, time.perf_counter() - start)
        return {"bytes_per_second": buffer.numel() / max(best, 1e-9)}


def _is_number(tensor: torch.Tensor | None) -> bool:
    """No place and no truth."""
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())


def _turned(leaf: Any) -> Any:
    """The same elements the other way round."""
    tensor = families.tensor_of(leaf)
    return like(leaf, tensor.flip(list(range(tensor.dim()))))


def _launches(
    trees: list[dict[str, Any]], buffers: list[bytes], ignored: set[tuple[int, int]]
) -> list[origin.Launch]:
    """Launches from the wire; what they do not depend on is left out."""

    def tensors(tree: dict[str, Any]) -> list[torch.Tensor]:
        values = map(as_tensor, leaves_of(revived_argument(tree, buffers, {})))
        return [item for item in values if item is not None]

    return [
        origin.Launch(
            [(place if "memory" in tree else -1, item)
             for place, tree in enumerate(launch["before"]) if (number, place) not in ignored
             for item in tensors(tree)],
            [item for tree in launch["after"] for item in tensors(tree)],
        )
        for number, launch in enumerate(trees)
    ]  # fmt: skip


def _is_wrong(facts: dict[str, Any]) -> bool:
    return any(kind in facts for kind in WRONG)


def _distinct(places: torch.Tensor, dim: int, dims: int) -> torch.Tensor:
    """False along every line in which a place stands twice."""
    if places.dim() == dims - 1:
        return torch.ones((), dtype=torch.bool)
    ordered = places.sort(dim=dim).values
    twice = (ordered.diff(dim=dim) == 0).any(dim=dim, keepdim=True)
    return ~twice


def serve(channel: socket.socket, walls: dict[str, str]) -> None:
    """Answer the parent until it hangs up."""
    serving.serve(channel, walls, _opened, _answer, fault="problem_error")


def _opened(header: dict[str, Any]) -> Referee:
    return Referee(header["source"], header["framework"], header["seeds"])


def _answer(referee: Referee, header: dict[str, Any], buffers: list[bytes]) -> Any:
    do = header["do"]
    if do == "load":
        return referee.load(int(header["most_elements"]))
    if do == "plan":
        return referee.plan(int(header["level"]), int(header["size_level"]), int(header["most"]))
    if do == "larger":
        return referee.larger(int(header["level"]), int(header["long"]))
    if do == "lengths":
        return referee.lengths(int(header["longest"]))
    if do == "own_small":
        return referee.own_small(int(header["level"]))
    if do in ("timed", "exchanged", "origin"):
        return getattr(referee, do)(header, buffers)
    if do == "fresh":
        return referee.fresh(list(map(int, header["seeds"])))
    if do == "judge_fresh":
        return referee.judge_fresh(int(header["which"]), header["tree"], buffers)
    if do == "speed":
        return referee.speed(int(header["bytes"]))
    if do in ("inputs", "swapped", "twin"):
        return getattr(referee, do)(int(header["number"]))
    if do == "judge":
        return referee.judge(int(header["number"]), header["tree"], buffers)
    if do == "weights":
        return referee.weights(int(header["seed"]))
    if do == "judge_state":
        return referee.judge_state(list(header["trained"]), header["tree"], buffers)
    if do == "evaluated":
        return referee.evaluated(int(header["number"]), list(header["trained"]))
    if do == "slender":
        return referee.slender(int(header["beyond"]))
    if do in ("ways", "settings", "modes"):
        return getattr(referee, do)()
    return referee.probes()
