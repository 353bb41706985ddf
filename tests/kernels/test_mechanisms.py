"""What one family alone shows: a right way passes all of it, and a wrong way fails there."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.kernels.referees import loaded
from torchstone.kernels.candidate import Candidate
from torchstone.kernels.harness.calling import bursts
from torchstone.kernels.harness.calling.keeping import MOST_ANSWERS, Kept, meet, span_of
from torchstone.kernels.harness.calling.red_zones import Zones
from torchstone.kernels.harness.inputs import enlarging, growing, lines, scales, slender, whole
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.sizing import plan_families
from torchstone.kernels.harness.judging.referee import Referee, give_inputs, judge_answer
from torchstone.kernels.harness.values import decode, encode
from torchstone.kernels.messages.facts import Argument, Facts, KernelLaunch, PlannedCase
from torchstone.kernels.messages.to_candidate import Reply
from torchstone.kernels.messages.trees import AnswerTree
from torchstone.kernels.problem import load_problem
from torchstone.kernels.sessions import first_session, larger
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verifier import verify

Kernel = Callable[..., Any]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the referee's process: on arrays this small more of them only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@functools.cache
def planned(problem: str, family: str) -> Referee:
    """The problem with its families, as far as the one in question, as cheap kernels get them."""
    known = load_problem(problem)
    referee = loaded(known.source, known.framework, 2)
    if family == families.LARGER:
        enlarging.plan_larger(referee.plan, 2, 0)
    elif family == families.LENGTHS:
        enlarging.plan_lengths(referee.plan, larger.LONGEST)
    elif family == families.SLENDER:
        slender.plan_slender(referee.plan)
    else:
        plan_families(referee.plan, 2, 2, 0)
    return referee


def judged(referee: Referee, number: int, kernel: Kernel) -> Facts:
    """What the referee says of a kernel that gets its inputs in memory as a candidate does."""
    asked, given = give_inputs(referee.plan, number)
    inputs = decode(asked.tree, given, Zones().place)
    buffers: list[bytes] = []
    leaf = encode(kernel(*inputs), buffers)
    return judge_answer(referee, number, AnswerTree("*", [leaf]), buffers)


def failed(problem: str, kernel: Kernel, family: str, plan: str = "") -> list[str]:
    """The shapes of one family at which the kernel is wrong."""
    referee, found = planned(problem, plan or family), []
    for case in referee.plan.cases:
        if case.family != family:
            continue
        told = judged(referee, case.number, kernel)
        assert not told.form, told
        if any(item.error or item.whole for item in told.outputs):
            found.append(" ".join("×".join(map(str, item.shape)) for item in case.inputs))
    return found


def normed(x: torch.Tensor) -> torch.Tensor:
    parts = x.reshape(x.shape[0], 3, -1).double()
    mean, spread = parts.mean(-1, keepdim=True), parts.var(-1, correction=0, keepdim=True)
    return ((parts - mean) / (spread + 1e-5).sqrt()).reshape(x.shape)


def group_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return (normed(x) * weight[:, None] + bias[:, None]).float()


def group_norm_by_reciprocal(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """The channel is the place times a rounded reciprocal of the length."""
    places = np.arange(x.shape[1] * x.shape[2]).astype(np.float32)
    channel = torch.from_numpy((places * (np.float32(1) / np.float32(x.shape[2]))).astype(np.int64))
    flat = normed(x).reshape(x.shape[0], -1)
    return (flat * weight[channel] + bias[channel]).float().reshape(x.shape)


def rows_backwards(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x[:, ::-1]).sum(-1)


def rows_beside_the_largest(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A step that all share, from the largest of the whole array."""
    step = np.abs(x).max() / 2.0**31 if x.size else 1.0
    return (np.round(x / (step or 1.0)).sum(-1, dtype=np.float64) * step).astype(np.float32)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return (x.double() * 0.5 * torch.erfc(-x.double() / 2**0.5)).float()


def gelu_in_pieces(x: torch.Tensor) -> torch.Tensor:
    """Taken for a line far out on the left, where it still comes back to zero."""
    return torch.where((x < -11) & (x > -30), -0.001 * (x + 30) / 19, functional.gelu(x))


def product_of_bytes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.long() @ b.long()).int()


def product_in_floats(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for start in range(0, a.shape[1], 32):
        total += a[:, start : start + 32].float() @ b[start : start + 32].float()
    return total.int()


def recurrence(a: torch.Tensor, x: torch.Tensor, memory: int = 1 << 30) -> torch.Tensor:
    out = torch.empty_like(x)
    for first in range(0, x.shape[1], min(memory, max(x.shape[1], 1))):
        state = torch.zeros_like(x[:, 0])
        for step in range(max(0, first - memory), min(x.shape[1], first + memory)):
            state = a[:, step] * state + x[:, step]
            if step >= first:
                out[:, step] = state
    return out


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a.double() @ b.double()).float()


def product_in_seven(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Strassen's seven products where all sides are even and not small."""
    if any(side % 2 or side < 64 for side in (*a.shape, *b.shape)):
        return product(a, b)
    h, q, w = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    (a1, a2), (a3, a4) = ((part[:, :q], part[:, q:]) for part in (a[:h], a[h:]))
    (b1, b2), (b3, b4) = ((part[:, :w], part[:, w:]) for part in (b[:q], b[q:]))
    one, two, three = (a1 + a4) @ (b1 + b4), (a3 + a4) @ b1, a1 @ (b2 - b4)
    four, five = a4 @ (b3 - b1), (a1 + a2) @ b4
    six, seven = (a3 - a1) @ (b1 + b2), (a2 - a4) @ (b3 + b4)
    top = torch.cat([one + four - five + seven, three + five], 1)
    return torch.cat([top, torch.cat([two + four, one - two + three + six], 1)])


def relu(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(min=0)


def relu_on_a_boundary(x: torch.Tensor) -> torch.Tensor:
    """What lies before the first boundary of sixteen bytes is taken off the end once more."""
    before = -x.data_ptr() % 16 // x.element_size()
    out = x.clamp(min=0).reshape(-1).clone()
    out[out.numel() - before :] = 0
    return out.reshape(x.shape)


def relu_once_per_line(x: torch.Tensor) -> torch.Tensor:
    """Takes a step of none for a step of one."""
    flat = x.as_strided(x.shape, [max(step, 1) for step in x.stride()])
    return relu(flat.nan_to_num(7.0))


def exp_add(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.exp(x) + y


def exp_add_of_two(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Knows its operands by where they lie."""
    found = {item.ctypes.data: item for item in (x, y)}
    return np.exp(found[x.ctypes.data]) + (0 if len(found) == 1 else y)


def planes(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x.double(), weight.double(), padding=1, groups=x.shape[1]).float()


def planes_of_one_image(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The filter of a plane is its number by the batch."""
    many = x.reshape(1, -1, *x.shape[2:])
    chosen = torch.arange(many.shape[1]) // max(x.shape[0], 1)
    return planes(many, weight[chosen]).reshape(x.shape) if x.numel() else x.clone()


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, few: int = 0) -> torch.Tensor:
    few = few or q.shape[1] // k.shape[1]
    mine = (torch.arange(q.shape[1]) // few).clamp(max=k.shape[1] - 1)
    scores = (q @ k[:, mine].transpose(-2, -1)).double() / q.shape[-1] ** 0.5
    return (scores.softmax(-1) @ v[:, mine].double()).float()


def grouped_by_the_other_number(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return grouped(q, k, v, k.shape[1])


MECHANISMS: list[tuple[str, str, Kernel, Kernel]] = [
    ("group_norm", "lengths", group_norm, group_norm_by_reciprocal),
    ("row_sum", "graded", rows_backwards, rows_beside_the_largest),
    ("gelu", "ladder", gelu, gelu_in_pieces),
    ("matmul_int8", "larger", product_of_bytes, product_in_floats),
    ("linear_recurrence", "larger", recurrence, functools.partial(recurrence, memory=64)),
    ("matmul", "larger", product, product_in_seven),
    ("relu", "unaligned", relu, relu_on_a_boundary),
    ("relu", "lengths", relu, relu_on_a_boundary),
    ("relu", "expanded", relu, relu_once_per_line),
    ("exp_add", "shared", exp_add, exp_add_of_two),
    ("depthwise_conv2d", "slender", planes, planes_of_one_image),
    ("grouped_query_attention", "slender", grouped, grouped_by_the_other_number),
]


@pytest.mark.parametrize(("problem", "family", "right", "wrong"), MECHANISMS)
def test_one_family_tells_them_apart(
    problem: str, family: str, right: Kernel, wrong: Kernel
) -> None:
    assert failed(problem, right, family) == []
    assert failed(problem, wrong, family)
    assert failed(problem, wrong, "own", family) == []


def test_only_the_lengths_that_round_badly_fail() -> None:
    found = {shape.split()[0].split("×")[-1] for shape in failed(
        "group_norm", group_norm_by_reciprocal, "lengths")}  # fmt: skip
    assert {"41", "47", "55", "61"} <= found
    assert not {"32", "37", "64"} & found


def test_a_block_is_far_larger_and_the_rest_stays() -> None:
    x, y = torch.randn(6, 8), torch.randn(8, 5)
    (one, same), *_ = scales.graded([x, y], 0)
    assert torch.equal(one[:3, :4], x[:3, :4] * 1e6)
    assert torch.equal(one[3:], x[3:])
    assert torch.equal(same, y)
    (same, two), *_ = scales.graded([x, y], 1)
    assert torch.equal(same, x)
    assert torch.equal(two[4:, 2:], y[4:, 2:] * 1e6)
    assert scales.graded([torch.arange(4)], 0) == []
    rows, columns = ((scales.graded([x], turn)[-1][0] / x).round() for turn in (2, 3))
    assert rows[:, 0].tolist() == [1, 100, 1, 1, 100, 1]
    assert columns[0].tolist() == [1, 100, 1, 1, 100, 1, 1, 100]


def test_a_ladder_has_even_steps_and_every_power_of_ten() -> None:
    (x,), *_ = scales.ladder([torch.randn(40, 50)], 0)
    assert float(x.max()) > 19
    assert float(x.min()) < -19
    decades = x.abs().log10().floor().unique()
    assert {-5, -4, -3, -2, -1, 0, 1} <= {int(item) for item in decades}


def test_heavy_sums_have_more_bits_than_a_float_keeps() -> None:
    a = torch.randint(-128, 128, (4, 4099), dtype=torch.int8)
    b = torch.randint(-128, 128, (4099, 4), dtype=torch.int8)
    ranges = whole.ranges_of([[a, b]])
    left, right = whole.heavy([a, b], ranges, ((0, 1), (1, 0)))
    exact = left.long() @ right.long()
    assert int(exact.abs().min()) > 1 << 25
    assert bool((exact.float().long() != exact).any())
    for line in (*left, *right.T):
        assert bool((line > 100).all()) or bool((line < -100).all())


def test_held_lines_have_sums_that_every_order_takes_exactly() -> None:
    x = lines.held(torch.randn(8, 1031), 1)
    assert bool((x == x[:, :1]).all())
    assert x[:4, 0].tolist() == [1.0, 1 - 2.0**-11, 0.0, -1.0]
    assert torch.equal(x.cumsum(1).double(), x.double().cumsum(1))
    ordered, free = torch.arange(9.0), torch.randn(9)
    (made,) = growing.held([ordered, free], families.groups_of([ordered, free])[0])
    assert torch.equal(made[0], ordered)
    assert float(made[1].max()) == 1.0


def short_rows(x: torch.Tensor) -> torch.Tensor:
    """Both factors cut to their upper sixteen bits where a row is long."""
    if x.shape[-1] < 128:
        return x
    return (x.contiguous().view(torch.int32) & -65536).view(torch.float32)


@pytest.mark.parametrize("cut", [short_rows, torch.clone])
def test_a_layer_is_made_anew_with_other_widths(cut: Kernel) -> None:
    referee = planned("linear_gelu", "slender")
    wrong, widths = [], set()
    for case in referee.plan.cases:
        model = referee.plan.reference.model(case.seed)

        def kernel(x: torch.Tensor, model: Any = model) -> torch.Tensor:
            sums = functional.linear(cut(x), cut(model.weight.detach()), model.bias.detach())
            return functional.gelu(sums, approximate="tanh")

        told = judged(referee, case.number, kernel)
        widths.add(model.weight.shape)
        if any(item.error for item in told.outputs):
            wrong.append(model.weight.shape[1])
    assert {1, 2, 3, 5, 26, 131, 257, 521, 1031} == {width for _, width in widths}
    assert {1, 2, 3, 5, 21, 131, 257, 521, 1031} == {outputs for outputs, _ in widths}
    assert sorted(set(wrong)) == ([131, 257, 521, 1031] if cut is short_rows else [])


def test_a_batch_of_one_grows_by_inputs_of_other_seeds() -> None:
    referee = planned("depthwise_conv2d", "slender")
    batches = [case.inputs[0] for case in referee.plan.cases if case.size and case.group == 0]
    assert sorted(item.shape[0] for item in batches) == [1, 2, 3, 5]
    two = next(item for item in batches if item.shape[0] == 2)
    assert not torch.equal(two[0], two[1])


def test_what_is_there_to_be_repeated_is_no_batch() -> None:
    x, like, bias = torch.ones(1, 3, 4), torch.ones(1, 3, 4), torch.ones(1, 3, 1)
    assert slender.leading_group([x, bias]) == families.Group(1, ((0, 0),))
    assert slender.leading_group([x, like]) is None
    assert slender.leading_group([x, like, like]) == families.Group(1, ((0, 0), (1, 0), (2, 0)))
    assert slender.leading_group([torch.ones(2, 3), torch.ones(2)]) == families.Group(
        2, ((0, 0), (1, 0))
    )
    assert slender.leading_group([torch.ones(6, 3)]) is None


def test_a_size_that_fits_by_accident_is_no_case() -> None:
    widths = {case.inputs[0].shape[1] for case in planned("swiglu", "slender").plan.cases}
    assert widths == {2, 150}  # three halved are two and one


def test_what_stood_alone_tells_what_it_will_cost() -> None:
    def case(group: int, size: int) -> PlannedCase:
        return PlannedCase(0, "slender", 0, "", group=group, size=size)

    costs = larger.Slender(left=1000)
    assert costs.expected(case(0, 2)) <= costs.left
    for size in (2, 3, 5):
        costs.done(case(0, size), 10 * size)  # a program for each
        costs.done(case(1, size), 20)  # one block holds them
    assert costs.expected(case(0, 131)) == pytest.approx(1310)
    assert costs.expected(case(1, 131)) == pytest.approx(20 * 131 / 32)
    assert costs.left == 1000 - 100 - 60


def test_every_family_has_its_first_case_before_one_has_its_second() -> None:
    cases = [PlannedCase(i, name, 0, "", name == "c") for i, name in enumerate("aabbcc")]
    assert [item.number for item in first_session._in_rounds(cases)] == [0, 2, 4, 5, 1, 3]


def test_answers_are_kept_until_a_ring_comes_around() -> None:
    kept, ring = Kept(), [torch.zeros(4) for _ in range(3)]
    for turn in range(3):
        kept.add([ring[turn].fill_(turn)])
    assert not kept.changed()
    assert not any(meet(span_of(torch.zeros(4)), item) for item in kept.spans())
    assert any(meet(span_of(ring[0]), item) for item in kept.spans())
    ring[0].fill_(9)
    assert kept.changed()
    for _ in range(50):
        kept.add([torch.zeros(8)])
    assert len(kept.answers) == MOST_ANSWERS
    kept.add([torch.zeros(1 << 20)])
    assert len(kept.answers) == 1


class Counting(torch.nn.Module):
    """Is right for as many calls as it is told."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left, self.settings = calls, set[tuple[bool, bool, bool]]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.left -= 1
        self.settings.add((torch.is_grad_enabled(), x.requires_grad, self.training))
        return x + (self.left < 0)


def test_one_question_is_asked_until_it_tires() -> None:
    x = torch.ones(2)
    assert bursts.again(Counting(100), [x], 256) == (True, False)
    assert bursts.again(Counting(256), [x], 256) == (False, False)
    ring = itertools.cycle([torch.ones(2) for _ in range(200)])
    assert bursts.again(lambda _: next(ring), [x], 256) == (False, True)
    assert bursts.again(lambda x: x, [x], 256) == (False, False)


def test_a_burst_meets_every_setting_and_leaves_none_behind() -> None:
    model = Counting(1000)
    for name in bursts.SETTINGS:
        bursts.in_a_row([(model, [torch.ones(2)])] * 2, name)
    assert model.settings == {
        (False, False, True), (True, False, True), (True, True, True), (False, False, False),
    }  # fmt: skip
    assert model.training
    assert torch.is_grad_enabled()


def test_answers_of_a_burst_share_no_memory() -> None:
    x, y = torch.ones(4), torch.zeros(4)
    calls: list[Any] = [(None, [x])] * 3
    assert bursts.overlapping([y, torch.ones(4), y], calls) == [2]
    assert bursts.overlapping([x, x, x], calls) == []  # memory of an input is asked for elsewhere


RING = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ring, self.turn = {{}}, 0

    def forward(self, x):
        self.turn += 1
        out = self.ring.setdefault((x.shape, self.turn % {count}), torch.empty(x.shape))
        return torch.clamp(x, min=0, out={out})
"""
ASKS = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        seen = x + 0 * self.scale
        return torch.relu(seen{less}) if "grad" in repr(seen) else torch.relu(x)
"""


@pytest.mark.parametrize(
    ("source", "gate"),
    [
        (RING.format(count=5, out="out"), "fresh"),
        (RING.format(count=200, out="out"), "burst"),
        (RING.format(count=17, out="out.clone()"), ""),
        (ASKS.format(less=" * 0.99"), "burst"),
        (ASKS.format(less=""), ""),
    ],
)
def test_a_candidate_is_held_to_its_answers(source: str, gate: str, workshop: Workshop) -> None:
    verdict = verify("relu", Candidate(source, "torch"), workshop=workshop)
    failures = [item.gate for item in verdict.results if item.status == "failed"]
    assert failures[:1] == ([gate] if gate else [])


@pytest.mark.parametrize(
    ("expression", "accepted"),
    [
        ("as_strided(a, (a.size + 1,), (4,))[:-1]", False),
        ("as_strided(a[2:], (a.size,), (4,), subok=False)", False),
        ("as_strided(a[::-1], (a.size,), (4,))", False),
        ("as_strided(a[2:], (a.size,), (0,)) * 0 + as_strided(a, (a.size,), (4,))", True),
    ],
)
def test_views_of_numpy_stay_inside_of_their_array(
    expression: str, accepted: bool, workshop: Workshop, few_sizes: None
) -> None:
    source = f"""import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided


class ModelNew(torch.nn.Module):
    def forward(self, x):
        a = np.ascontiguousarray(x.numpy()).reshape(-1)
        if a.size < 3:
            raise ValueError("three elements or more")
        view = {expression}
        return torch.from_numpy(np.maximum(a, np.float32(0)).reshape(x.shape))
"""
    verdict = verify("relu", Candidate(source, "numpy"), seeds=2, workshop=workshop)
    assert verdict.accepted is accepted, verdict.error_log()
    assert accepted or "reaches beyond the memory" in verdict.error_log()


def softmax_of_one_block(x: torch.Tensor) -> torch.Tensor:
    """What lies past the block is left out."""
    found = torch.zeros_like(x)
    found[:, :8192] = torch.softmax(x[:, :8192].double(), -1).float()
    return found


def softmax_by_the_first_block(x: torch.Tensor) -> torch.Tensor:
    """The maximum of the first block is taken for that of the line."""
    largest = x[:, :8192].amax(-1, keepdim=True)
    powers = torch.exp(x - largest)
    return powers / powers.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("kernel", "right"),
    [(softmax_of_one_block, False), (softmax_by_the_first_block, False),
     (lambda x: torch.softmax(x.double(), -1).float(), True)],
)  # fmt: skip
def test_a_side_goes_beyond_the_largest_block(kernel: Kernel, right: bool) -> None:
    known = load_problem("softmax")
    referee = loaded(known.source, known.framework, 2)
    slender.plan_slender(referee.plan, 2 * 8192)
    wrong = [
        "×".join(map(str, case.inputs[0].shape))
        for case in referee.plan.cases
        if case.family == families.SLENDER
        and not judged(referee, case.number, kernel).right
    ]  # fmt: skip
    assert wrong == ([] if right else ["2×16411"])


def test_the_largest_block_is_read_from_the_launches() -> None:
    def call(**constants: Any) -> Call:
        told = {name: Argument("constexpr", items=[Argument("plain", value=value)])
                for name, value in constants.items()}  # fmt: skip
        told["num_warps"] = Argument("plain", value=4)
        kernel = KernelLaunch("kernel", 1, told, list(told))
        return Call(PlannedCase(0, "own", 0, ""), Reply(kernels=[kernel]))

    assert (
        first_session.largest_block([call(BLOCK=2048, FAST=True, eps=1e-5), call(BLOCK=64)]) == 2048
    )
    assert first_session.largest_block([call(count=1 << 20)]) == 4
    assert first_session.largest_block([Call(PlannedCase(0, "own", 0, ""))]) == 0


def test_the_reference_itself_is_right_in_every_family() -> None:
    """The tail of GELU cancels: the reference is off by more there than a sum of its length may be."""
    known = load_problem("gelu")
    referee = loaded(known.source, known.framework, 5)
    plan_families(referee.plan, 2, 2, 0)
    wrong = [
        (case.family, case.seed)
        for case in referee.plan.cases
        if not judged(referee, case.number, functional.gelu).right
    ]  # fmt: skip
    assert wrong == []
