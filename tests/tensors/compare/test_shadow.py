"""The shadow is the run in high precision: equal to a plain fp64 run of the same model."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.tensors.compare.fault_suite import (
    ConvNet,
    Experts,
    MaskedAttention,
    Recurrent,
    Transformer,
    UNet,
)
from torchstone import compare_precision
from torchstone.tensors.compare import shadowed_step as module
from torchstone.tensors.compare.step import as_batch, loss_of


class Scaled(torch.autograd.Function):
    """A custom function that saves a tensor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return grad * (s + x * s * (1 - s))


class InPlace(nn.Module):
    """Writes through views, custom functions, tied weights, a branch that the data decide."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(16, 16)
        self.b = nn.Linear(16, 16)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x).clone()
        y[:, :4].mul_(2).add_(1)
        y.view(-1)[::3] += 0.5
        y = Scaled.apply(y)
        if y.mean() > -100:
            y = y.t().contiguous().t()
        return self.b(y) + y.chunk(2, 1)[0].repeat(1, 2)


MODELS: dict[str, tuple[Any, Any]] = {
    "transformer": (Transformer, lambda: torch.randint(0, 64, (2, 9))),
    "conv net": (ConvNet, lambda: torch.randn(2, 3, 8, 8)),
    "gru": (Recurrent, lambda: torch.randn(2, 5, 8)),
    "u-net": (UNet, lambda: torch.randn(2, 3, 8, 8)),
    "in place": (InPlace, lambda: torch.randn(6, 16)),
    "lstm": (lambda: nn.LSTM(8, 12, 2, batch_first=True), lambda: torch.randn(2, 5, 8)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True),
        lambda: torch.randn(2, 5, 16),
    ),
}


def shadow_gradients(
    model: nn.Module, batch: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, dict[str, torch.Tensor]]:
    """The report, and the gradients that the shadow memory held at the end."""
    kept: dict[str, torch.Tensor] = {}
    measured = module._measured

    def spy(
        settings: Any, places: Any, mode: Any, out: Any, final: Any, originals: Any, *more: Any
    ) -> Any:
        for item in originals:
            if item.tensor.grad is not None:
                kept[item.name] = mode.memory.value(item.tensor.grad).clone()
        return measured(settings, places, mode, out, final, originals, *more)

    monkeypatch.setattr(module, "_measured", spy)
    report = compare_precision(model, batch, high=torch.float64, simulate=True, plan=False)
    return report, kept


@pytest.mark.parametrize("name", list(MODELS))
def test_loss_and_every_gradient_equal_a_plain_fp64_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    build, data = MODELS[name]
    model, batch = build(), data()
    plain = copy.deepcopy(model).double()
    wide = batch.double() if batch.is_floating_point() else batch
    with torch.backends.mkldnn.flags(enabled=False):
        loss = loss_of(plain(*as_batch(wide).args), None)
    assert loss is not None
    loss.backward()
    report, gradients = shadow_gradients(model, batch, monkeypatch)
    assert report.loss_high == pytest.approx(float(loss.detach()), rel=1e-12)
    for key, parameter in plain.named_parameters():
        assert parameter.grad is not None
        assert torch.allclose(gradients[key], parameter.grad, rtol=1e-9, atol=1e-12), key


def test_nothing_of_the_model_is_changed() -> None:
    torch.manual_seed(0)
    model, batch = ConvNet(), torch.randn(2, 3, 8, 8)
    model.head.weight.grad = torch.ones_like(model.head.weight)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    random = torch.random.get_rng_state()
    compare_precision(model, batch, simulate=True)
    for key, value in model.state_dict().items():
        assert torch.equal(before[key], value), key
        assert value.dtype == before[key].dtype
    assert torch.equal(model.head.weight.grad, torch.ones_like(model.head.weight))
    assert torch.equal(random, torch.random.get_rng_state())
    assert model.training


def test_two_runs_give_the_same_numbers() -> None:
    torch.manual_seed(0)
    model, batch = MaskedAttention(), torch.randn(2, 6, 32)
    first, second = (compare_precision(model, batch, simulate=True) for _ in range(2))
    assert first.to_json() == second.to_json()


def test_dropout_has_the_same_mask_on_both_sides() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5), nn.Linear(64, 64))
    report = compare_precision(model, torch.randn(8, 64), simulate=True)
    assert report.output_error < 0.02


def test_integers_that_flip_are_counted_and_followed() -> None:
    class Choose(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(64, 64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x @ self.w
            top = y.topk(8, dim=-1)
            return top.values * top.indices

    torch.manual_seed(0)
    report = compare_precision(Choose(), torch.randn(64, 64), simulate=True)
    assert report.flips > 0


def test_shapes_that_the_data_decide_follow_the_low_run() -> None:
    torch.manual_seed(0)
    report = compare_precision(Experts(), torch.randn(2, 8, 32), simulate=True)
    assert report.first_bad is None


@pytest.mark.parametrize("low", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_is_shadowed_too(low: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 8))
    report = compare_precision(model, torch.randn(8, 32), low=low, autocast=True)
    assert 0 < report.output_error < 0.02
    assert any(item.operator == "addmm" and item.local_units > 0 for item in report.operators)
    assert report.first_bad is None


def test_a_scaler_shows_what_vanishes_without_it() -> None:
    class Faint(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(16, 16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ((x @ self.w).float() * 1e-8).mean()

    torch.manual_seed(0)
    model, batch = Faint(), torch.randn(8, 16)
    bare = compare_precision(model, batch, low=torch.float16, simulate=True, plan=False)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    scaler.scale(torch.ones(1))  # a scaler has its scale from the first use on
    scaled = compare_precision(
        model, batch, low=torch.float16, simulate=True, scaler=scaler, plan=False
    )
    assert bare.gradient_error > 0.5
    assert scaled.gradient_error < 0.05


def test_layers_limit_the_comparison() -> None:
    torch.manual_seed(0)
    model, batch = Transformer(), torch.randint(0, 64, (2, 9))
    report = compare_precision(model, batch, layers=["before.1"], simulate=True)
    modules = {item.place.module for item in report.operators}
    assert modules
    assert all(name == "before.1" or name.startswith("before.1.") for name in modules)
    assert {item.place.phase for item in report.operators} == {"forward", "backward"}


def test_layer_by_layer_holds_less_and_still_names_the_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.tensors.compare.fault_suite import NaiveVariance
    from torchstone.tensors.compare.shadow.memory import ShadowMemory

    most = [0]
    keep = ShadowMemory._keep

    def spy(self: ShadowMemory, *given: Any) -> Any:
        made = keep(self, *given)
        most[0] = max(most[0], self.bytes)
        return made

    monkeypatch.setattr(ShadowMemory, "_keep", spy)
    torch.manual_seed(0)
    model, batch = Transformer(NaiveVariance()), torch.randint(0, 64, (4, 16))
    whole = compare_precision(model, batch, simulate=True, plan=False)
    most_whole, most[0] = most[0], 0
    by_layer = compare_precision(model, batch, simulate=True, per_layer=True)
    assert whole.first_bad is not None
    assert by_layer.first_bad is not None
    assert by_layer.first_bad.place == whole.first_bad.place
    assert most[0] < 0.7 * most_whole
    assert any("layer by layer" in note.en for note in by_layer.notes)


def test_a_backward_operator_is_named_by_its_line() -> None:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            huge = grad * 60000 * 60000  # the line to be named
            return huge / 60000 / 30000

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.relu(Bad.apply(self.lin(x)))

    torch.manual_seed(0)
    report = compare_precision(Net(), torch.randn(4, 8), low=torch.float16, simulate=True)
    bad = report.first_bad
    assert bad is not None
    assert (bad.kind, bad.place.phase) == ("nonfinite", "backward")
    assert bad.place.scope == "test_a_backward_operator_is_named_by_its_line.Bad.backward"
    with open(__file__, encoding="utf-8") as file:
        assert "the line to be named" in file.read().splitlines()[bad.place.line - 1]


def test_native_kernels_run_in_a_process_of_their_own() -> None:
    """The machine's own bf16 kernels may be missing; the probe finds out without dying."""
    import subprocess
    import sys

    code = (
        "import torch; from torch import nn; from torchstone import compare_precision;"
        "torch.manual_seed(0); m = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16));"
        "r = compare_precision(m, torch.randn(4, 16)); assert r.output_error < 0.05;"
        "assert r.simulated == (not __import__('torchstone.tensors.compare.shadow.simulate', fromlist=['x'])"
        ".kernels_work(torch.bfloat16)); print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "ok", done.stderr
