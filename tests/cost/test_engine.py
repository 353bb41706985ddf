"""The counted pass: figures, attribution, phases, and a model that stays as it was."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torchstone.core.errors import InputError, UsageError
from torchstone.cost import count_step, measure_cost
from torchstone.cost.counting.engine import run
from torchstone.cost.records.ledger import BACKWARD, FORWARD, OPTIMIZER, RECOMPUTE, Cost


def adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=True)


def flops(cost: Cost, phase: str | None = None) -> dict[tuple[str, str], int]:
    return {
        (key.module, key.operator): tally.flops
        for key, tally in cost.entries.items()
        if tally.flops and phase in (None, key.phase)
    }


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def test_a_small_net_by_hand() -> None:
    cost = run(net(), torch.randn(2, 8), train=True, optimizer=adamw)
    assert cost.failure is None
    assert flops(cost, FORWARD) == {("0", "aten.addmm"): 512, ("2", "aten.addmm"): 256}
    # the first layer needs no gradient of its input: one product instead of two
    assert flops(cost, BACKWARD) == {("2", "aten.mm"): 512, ("0", "aten.mm"): 512}
    assert cost.parameters() == 8 * 16 + 16 + 16 * 4 + 4
    assert cost.memory.parameters == cost.memory.gradients == 4 * cost.parameters()
    assert cost.memory.optimizer == 2 * cost.memory.parameters
    # kept: what ReLU gives (its own backward and the next layer's need it) and the output
    assert cost.modules["1"].activation_bytes == 4 * 2 * 16
    assert cost.memory.activations == 4 * (2 * 16 + 2 * 4)
    assert set(cost.memory.peaks) == {FORWARD, BACKWARD, OPTIMIZER}


def test_the_model_is_left_as_it_was() -> None:
    model = net()
    model[2].weight.grad = torch.ones_like(model[2].weight)
    model.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ids = {name: id(value) for name, value in model.named_parameters()}
    run(model, torch.randn(2, 8), train=True, optimizer=adamw)
    assert not model.training
    assert ids == {name: id(value) for name, value in model.named_parameters()}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(model[2].weight.grad, torch.ones_like(model[2].weight))
    assert model[0].weight.grad is None
    assert type(model[0]) is nn.Linear
    assert nn.Module.__call__.__name__ == "_wrapped_call_impl"


def test_inputs_as_tensor_tuple_and_keywords() -> None:
    class Two(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a @ b

    a, b = torch.randn(2, 3), torch.randn(3, 5)
    for inputs in ((a, b), {"a": a, "b": b}, {"b": b, "a": a}):
        assert run(Two(), inputs).total().flops == 60
    with torch.inference_mode():
        assert run(Two(), (a, b)).total().flops == 60


def test_inference_mode_inside_the_model() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.inference_mode():
                return self.inner(x)

    x = torch.randn(2, 5, 16)
    assert run(Frozen(), x).total().flops == run(Frozen().inner, x).total().flops > 0


def test_checkpointed_work_stands_apart() -> None:
    class Block(nn.Module):
        def __init__(self, again: bool) -> None:
            super().__init__()
            self.again = again
            self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)

        def inner(self, x: torch.Tensor) -> torch.Tensor:
            return self.down(self.up(x).relu())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.inner, x, use_reentrant=False) if self.again else self.inner(x)

    x = torch.randn(4, 8, requires_grad=True)
    plain, again = (run(Block(flag), x, train=True) for flag in (False, True))
    assert plain.total(FORWARD).flops == again.total(FORWARD).flops == 2 * 2 * 4 * 8 * 32
    assert plain.total(BACKWARD).flops == again.total(BACKWARD).flops
    assert plain.total(RECOMPUTE).calls == 0
    # early stop: the last product is not computed again
    assert flops(again, RECOMPUTE) == {("up", "aten.addmm"): 2 * 4 * 8 * 32}
    assert again.memory.activations < plain.memory.activations


def test_backward_work_belongs_to_its_module() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 2)
    cost = run(model, torch.randn(2, 5, 16, requires_grad=True), train=True, replay=False)
    work = {
        path: (cost.under(path, FORWARD).flops, cost.under(path, BACKWARD).flops)
        for path in ("layers.0.self_attn", "layers.0.linear1", "layers.1.linear2", "")
    }
    assert all(backward == 2 * forward > 0 for forward, backward in work.values())
    assert not any(key.module == "" and tally.flops for key, tally in cost.entries.items())


def test_a_double_backward_is_no_recomputation() -> None:
    class Penalty(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            (slope,) = torch.autograd.grad(self.inner(x).tanh().sum(), x, create_graph=True)
            return slope.pow(2).sum()

    cost = run(Penalty(), torch.randn(3, 4, requires_grad=True), train=True)
    assert cost.failure is None
    assert cost.total(RECOMPUTE).calls == 0


def test_shared_parameters_count_once() -> None:
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    model[1].weight = model[0].weight
    cost = run(model, torch.randn(2, 8))
    assert cost.parameters() == 64
    assert cost.modules["1"].shared == 64
    assert cost.total().flops == 2 * 2 * 2 * 64


def test_a_compiled_model_is_counted_as_what_it_is() -> None:
    x = torch.randn(2, 8)
    assert run(torch.compile(net()), x).total().flops == run(net(), x).total().flops


def test_a_failure_keeps_what_came_before() -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.good, self.bad = nn.Linear(8, 8), nn.Linear(9, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.bad(self.good(x))

    report = measure_cost(Breaks(), torch.randn(2, 8))
    assert report.failed
    assert report.total["flops"] == 2 * 2 * 8 * 8
    assert report.gaps[0].subject == "bad"
    assert "[2, 8] X [9, 2]" in report.gaps[0].reason.say("en")


@pytest.mark.parametrize("inputs", [torch.randn(2, 9), (), {"nothing": torch.ones(1)}, 3])
def test_wrong_inputs_are_an_error(inputs: object) -> None:
    with pytest.raises(InputError) as caught:
        measure_cost(net(), inputs)
    assert "--input" in str(caught.value)


def test_not_a_model() -> None:
    with pytest.raises(UsageError, match=r"torch\.nn\.Module"):
        measure_cost(lambda x: x, torch.ones(1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="adamw"):
        measure_cost(net(), torch.randn(2, 8), train=True, optimizer="adamww")
    with pytest.raises(UsageError, match=r"optimizer: unknown name '5'; choose from none"):
        measure_cost(net(), torch.randn(2, 8), train=True, optimizer=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="mac"):
        measure_cost(net(), torch.randn(2, 8), convention="macs")
    with pytest.raises(UsageError, match=r"count_step: got str, expected torch\.nn\.Module"):
        count_step("model")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimizer", [1]),
        ("convention", 5),
        ("stages", 5),
        ("stages", "nothing"),
        ("autocast", torch.int8),
        ("autocast", "bf16"),
    ],
)
def test_wrong_arguments_are_told(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=name):
        measure_cost(net(), torch.randn(2, 8), train=True, **{name: value})  # type: ignore[arg-type]


def test_an_operator_without_a_counter_is_named() -> None:
    @torch.library.custom_op("torchstone_test::strange", mutates_args=())
    def strange(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @strange.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return strange(x) @ x

    report = measure_cost(Odd(), torch.randn(4, 4))
    assert [gap.subject for gap in report.gaps] == ["torchstone_test.strange"]
    assert "of all bytes" in report.gaps[0].reason.say("en")
    assert not report.failed
    assert report.total["flops"] == 2 * 64


def test_the_report_reads_as_mappings() -> None:
    report = measure_cost(net(), torch.randn(2, 8), train=True)
    for key in ("params", "flops", "bytes", "activations", "peak_memory_bytes", "vector_flops"):
        assert isinstance(report.total[key], int)
    assert sum(stage["flops"] for stage in report.stages.values()) == report.total["flops"]
    assert sum(item["flops"] for item in report.operators.values()) == report.total["flops"]
    assert report.modules[""]["flops"] == report.total["flops"]
    assert measure_cost(net(), torch.randn(2, 8), convention="mac").total["flops"] == 384
    names = [item.name for item in report.measures]
    assert {"params", "flops", "bytes", "peak_memory_bytes"} <= set(names)
    assert "<iframe" in report._repr_html_()


def test_what_the_forward_remembers_is_forgotten() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.positions: torch.Tensor | None = None
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            if self.positions is None:
                self.positions = torch.arange(x.shape[0], device=x.device)
                self.register_buffer("late", torch.ones(1, device=x.device))
            return self.inner(x) + self.positions[:, None]

    model = Remembers()
    x = torch.randn(3, 4)
    assert run(model, x).total().flops == run(model, x).total().flops == 96
    assert model.positions is None
    assert model.calls == 0
    assert "late" not in model._buffers
    assert model(x).device.type == "cpu"


def test_an_encoder_with_a_padding_mask() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    x, mask = torch.randn(2, 6, 16), torch.zeros(2, 6, dtype=torch.bool)
    mask[1, 4:] = True
    cost = run(model, {"src": x, "src_key_padding_mask": mask})
    assert cost.failure is None
    assert cost.total().flops == run(model, x).total().flops
    assert torch.backends.mha.get_fastpath_enabled()
    model.eval()
    with torch.no_grad(), count_step(model) as step:
        model(x, src_key_padding_mask=mask)
    assert step.cost.total().calls


def test_one_tensor_passed_twice_is_one() -> None:
    class Same(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a @ b.T if a is b else a @ b.T @ b

    x = torch.randn(3, 5)
    cost = run(Same(), (x, x))
    assert cost.total().flops == 90
    assert cost.memory.inputs == 60


def test_operands_of_two_formats_are_refused() -> None:
    cost = run(nn.Linear(4, 4, bias=False), torch.randn(2, 4, dtype=torch.bfloat16))
    assert cost.failure is not None
    assert "bfloat16 and float32" in cost.failure.error


def test_a_model_without_parameters_can_train() -> None:
    x = torch.randn(2, 2, requires_grad=True)
    assert measure_cost(nn.Identity(), x, train=True).total["params"] == 0


class Numbered(nn.Module):
    """A block that looks at its own number."""

    def __init__(self, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.inner, self.extra = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        return self.extra(x) if self.layer_idx % 3 == 2 else x


class HandsOn(Numbered):
    """A block that hands its number on, as to a cache."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        take(self.layer_idx)
        return self.inner(x)


def take(number: int) -> None:
    assert number >= 0


def test_layers_that_choose_by_their_number_are_not_copied() -> None:
    x = torch.randn(2, 8)
    chosen = nn.Sequential(*[Numbered(i) for i in range(12)])
    cost = run(chosen, x)
    assert cost.total().flops == (12 + 4) * 2 * 2 * 64
    assert not any(item.replayed for item in cost.modules.values())
    passed = nn.Sequential(*[HandsOn(i) for i in range(12)])
    assert sum(bool(item.replayed) for item in run(passed, x).modules.values()) == 9


def test_classes_that_hear_of_their_subclasses_are_left_alone() -> None:
    heard: list[str] = []

    class Base(nn.Module):
        def __init_subclass__(cls) -> None:
            heard.append(cls.__name__)

    class Block(Base):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    run(nn.Sequential(*[Block() for _ in range(8)]), torch.randn(2, 4))
    assert heard == ["Block"]


@dataclasses.dataclass
class Output:
    scores: torch.Tensor


class InADataclass(nn.Linear):
    def forward(self, x: torch.Tensor) -> Output:  # type: ignore[override]
        return Output(super().forward(x))


def test_outputs_in_dataclasses_have_a_backward() -> None:
    cost = run(InADataclass(4, 4), torch.randn(2, 4), train=True)
    assert cost.failure is None
    assert cost.total(BACKWARD).flops == 64


def test_training_without_a_gradient_is_a_failure() -> None:
    class Detached(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).detach()

    report = measure_cost(Detached(4, 4), torch.randn(2, 4), train=True)
    assert report.failed
    assert "gradient" in report.gaps[0].reason.say("en")
    assert report.total["forward_flops"] == 64


def test_inside_of_inference_mode_training_is_still_counted() -> None:
    with torch.inference_mode():
        cost = run(nn.Linear(4, 4), torch.randn(2, 4), train=True)
    assert cost.failure is None
    assert cost.total(BACKWARD).flops == 64


def test_an_exit_in_the_forward_is_a_failure() -> None:
    class Leaves(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            super().forward(x)
            raise SystemExit(0)

    cost = run(Leaves(4, 4), torch.randn(2, 4))
    assert cost.failure is not None
    assert "SystemExit" in cost.failure.error


class Named(nn.Parameter):
    """A parameter with a class of its own."""


def test_parameters_of_a_plain_subclass() -> None:
    model = nn.Linear(4, 4)
    model.weight = Named(model.weight.detach())
    assert run(model, torch.randn(2, 4), train=True).total(BACKWARD).flops == 64
    assert type(model.weight) is Named
    assert not model.weight._post_accumulate_grad_hooks


def test_lazy_layers_are_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="run the model once"):
        measure_cost(nn.LazyLinear(4), torch.randn(2, 4))
    step = count_step(nn.LazyLinear(4))
    with pytest.raises(ValueError, match="uninitialized"):
        step.__enter__()
    assert nn.Module.__call__.__name__ == "_wrapped_call_impl"


def test_runs_in_threads_give_everything_back() -> None:
    before = (torch.compile, torch.tensor, nn.Module.__call__, torch.Tensor.__format__)
    found: list[int] = []

    def work() -> None:
        found.append(run(net(), torch.randn(2, 8)).total().flops)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [768] * 4
    assert before == (torch.compile, torch.tensor, nn.Module.__call__, torch.Tensor.__format__)


def test_random_operators_in_place_draw_nothing() -> None:
    class Drops(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.empty(2, 1).bernoulli_(0.5)

    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    x = torch.ones(2, 4)
    run(Drops(), x)
    assert torch.equal(torch.rand(1), expected)
