"""A watch finds the parts of many kinds of loops, and never harms the training."""

from __future__ import annotations

import copy
import gc
import logging
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.watch.clocks import STILL
from tests.watch.toy import Toy
from torchstone.core.errors import UsageError
from torchstone.watch import TrainingAlertError, Watch, watch_training
from torchstone.watch.listen.optimizer_reader import OptimizerReader
from torchstone.watch.record.runfile import load_run

OPTIONS: dict[str, Any] = {"warmup_steps": 30, "folder": False, "clock": STILL}


def _net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def _batch() -> tuple[Tensor, Tensor]:
    return torch.randn(16, 8), torch.randint(4, (16,))


MODEL = _net()
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.01)


@watch_training(**OPTIONS)
def global_step(batch: tuple[Tensor, Tensor]) -> Tensor:
    OPTIMIZER.zero_grad()
    loss = F.cross_entropy(MODEL(batch[0]), batch[1])
    loss.backward()
    OPTIMIZER.step()
    return loss


def test_parts_are_found_in_globals(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(40):
            global_step(_batch())
    assert "model MODEL (Sequential)" in caplog.text
    assert "optimizer OPTIMIZER (SGD)" in caplog.text
    assert "[Monitor] Baseline established: {'grad_norm'" in caplog.text
    watch = global_step.watch  # type: ignore[attr-defined]
    assert next(iter(watch.optimizers.values())).watched.layers == ("0", "2")
    assert not watch.alerts


def test_bare_decorator_and_closure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = _net()
    optimizer = torch.optim.AdamW(model.parameters())

    @watch_training
    def step(batch: tuple[Tensor, Tensor]) -> dict[str, Any]:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        return {"loss": loss, "n": 16}

    for _ in range(5):
        assert step(_batch())["n"] == 16
    watch = step.watch  # type: ignore[attr-defined]
    watch.close()
    assert watch.call.loss is not None
    assert (tmp_path / ".torchstone" / ".gitignore").read_text() == "*\n"
    assert list((tmp_path / ".torchstone" / "watch").glob("*/run.tsw"))


def test_methods_find_their_own_parts() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.net = _net()
            self.parts = {"optimizer": torch.optim.SGD(self.net.parameters(), lr=0.1)}

        @watch_training(**OPTIONS)
        def training_step(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, int]:
            self.parts["optimizer"].zero_grad()
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            loss.backward()
            self.parts["optimizer"].step()
            return loss, 1

    trainer = Trainer()
    for _ in range(3):
        trainer.training_step(_batch())
    watch = Trainer.training_step.watch  # type: ignore[attr-defined]
    assert [name for name, _ in watch.found.optimizers] == ["argument 1.parts['optimizer']"]
    assert watch.call.loss is not None


def test_a_plain_loop() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(torch.randn(4, 8)), torch.randint(4, (4,)))
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert watch.call.step == 6
    assert next(iter(watch.optimizers.values())).updates == 5


def test_training_is_bit_for_bit_the_same() -> None:
    def final(watched: bool) -> Tensor:
        toy = Toy()
        toy.transform = lambda x, y: (x, y)
        if watched:
            toy.watched(None, steps=40)
        else:
            for _ in range(40):
                toy.train_step(toy.next_batch())
        return torch.cat([p.detach().flatten() for p in toy.model.parameters()])

    assert torch.equal(final(True), final(False))


def test_accumulation_over_calls() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = 0

    @watch_training(**OPTIONS)
    def step(batch: tuple[Tensor, Tensor]) -> Tensor:
        nonlocal count
        loss = F.cross_entropy(model(batch[0]), batch[1]) / 4
        loss.backward()
        count += 1
        if count % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    for _ in range(200):
        step(_batch())
    watch = step.watch  # type: ignore[attr-defined]
    assert next(iter(watch.optimizers.values())).updates == 50
    assert [a.line() for a in watch.alerts] == []


def test_two_optimizers_of_a_gan() -> None:
    torch.manual_seed(1)
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    one = torch.optim.Adam(generator.parameters(), 1e-3)
    two = torch.optim.Adam(critic.parameters(), 1e-3)

    @watch_training(**OPTIONS)
    def step(real: Tensor) -> dict[str, Tensor]:
        two.zero_grad()
        fake = generator(torch.randn(32, 4))
        d_loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
        d_loss.backward()
        two.step()
        one.zero_grad()
        g_loss = F.softplus(-critic(fake)).mean()
        g_loss.backward()
        one.step()
        return {"d_loss": d_loss, "g_loss": g_loss}

    for _ in range(150):
        step(torch.randn(32, 2) * 0.5 + 1)
    watch = step.watch  # type: ignore[attr-defined]
    assert len(watch.optimizers) == 2
    assert [a.line() for a in watch.alerts] == []
    assert watch.call.loss is not None


def test_autocast_and_a_loss_scaler() -> None:
    model = _net()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=20)

    @watch_training(**OPTIONS)
    def step(batch: tuple[Tensor, Tensor]) -> Tensor:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(model(batch[0]).float(), batch[1])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    for _ in range(80):
        step(_batch())
    watch = step.watch  # type: ignore[attr-defined]
    watched = next(iter(watch.optimizers.values()))
    assert watch.call.scaled
    assert 0 < watched.norm < 100, "unscaled"
    assert watched._format(True).name == "fp16"
    assert [a.line() for a in watch.alerts] == [], "backing off is a scaler's daily work"


def test_a_compiled_model_is_watched() -> None:
    model = torch.compile(_net(), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = Watch(model, optimizer, **OPTIONS)
    with watch:
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(torch.randn(4, 8)), torch.randint(4, (4,)))
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert next(iter(watch.optimizers.values())).watched.layers == ("0", "2")
    assert next(iter(watch.optimizers.values())).updates == 5


def test_the_norm_is_read_before_clipping() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @watch_training(**OPTIONS)
    def step(batch: tuple[Tensor, Tensor]) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        step.norm = nn.utils.clip_grad_norm_(model.parameters(), 1e-4)  # type: ignore[attr-defined]
        optimizer.step()
        return loss

    step(_batch())
    step(_batch())
    watch = step.watch  # type: ignore[attr-defined]
    assert next(iter(watch.optimizers.values())).norm == pytest.approx(
        float(step.__wrapped__.norm if hasattr(step.__wrapped__, "norm") else step.norm),
        rel=1e-5,  # type: ignore[attr-defined]
    )


def test_the_users_exception_passes_through_and_the_next_step_is_watched() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    error = KeyError("theirs")

    @watch_training(**OPTIONS)
    def step(batch: tuple[Tensor, Tensor], fail: bool = False) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        if fail:
            raise error
        optimizer.step()
        return loss

    step(_batch())
    with pytest.raises(KeyError) as caught:
        step(_batch(), fail=True)
    assert caught.value is error
    step(_batch())
    assert next(iter(step.watch.optimizers.values())).updates == 2  # type: ignore[attr-defined]


def test_on_alert_may_call_raise_or_skip() -> None:
    seen: list[str] = []
    Toy().watched(_loud, at=80, steps=90, on_alert=lambda alert: seen.append(alert.signal))
    assert "grad_norm" in seen
    with pytest.raises(TrainingAlertError, match="step 8"):
        Toy().watched(_loud, at=80, steps=90, on_alert="raise")
    toy = Toy()
    kept: list[Tensor] = []

    def poison(toy: Toy) -> None:
        kept.append(toy.model[0].weight.detach().clone())
        toy.loss_factor = float("nan")

    toy.watched(poison, at=80, steps=81, on_alert="skip")
    assert torch.equal(toy.model[0].weight, kept[0]), "the step was left out"


def test_a_raised_alert_speaks_the_users_language_and_travels() -> None:
    with pytest.raises(TrainingAlertError) as caught:
        Toy().watched(_loud, at=80, steps=90, on_alert="raise", lang="zh")
    assert "第 8" in str(caught.value)
    assert "应为信号处于正常范围" in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.alert == caught.value.alert


def test_an_exception_of_the_users_callback_is_theirs() -> None:
    def fails(alert: object) -> None:
        raise ZeroDivisionError("theirs")

    with pytest.raises(ZeroDivisionError):
        Toy().watched(_loud, at=80, steps=90, on_alert=fails)


def _loud(toy: Toy) -> None:
    toy.loss_factor = 100.0


def test_a_failure_of_the_watch_ends_the_watching_not_the_training(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = Watch(model, optimizer, **OPTIONS)

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("inside")

    with watch:
        monkeypatch.setattr(OptimizerReader, "read", broken)
        for _ in range(3):
            loss = F.cross_entropy(model(torch.randn(4, 8)), torch.randint(4, (4,)))
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert caplog.text.count("monitoring stopped, training continues: RuntimeError: inside") == 1


def test_parameters_that_cannot_be_read_are_named(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(10, 4, sparse=True)
            self.wave = nn.Parameter(torch.randn(4, dtype=torch.complex64))
            self.wide = nn.Parameter(torch.randn(4, dtype=torch.float64))
            self.ghost = nn.Parameter(torch.empty(3, device="meta"))

    model = Odd()
    real = [p for name, p in model.named_parameters() if name != "words.weight"]
    dense = torch.optim.SGD(real, lr=0.1)
    sparse = torch.optim.SparseAdam([model.words.weight], lr=0.1)
    with caplog.at_level(logging.INFO), Watch(model, [dense, sparse], **OPTIONS) as watch:
        for _ in range(3):
            loss = model.words(torch.tensor([1, 2])).sum() * (
                model.wave.abs().sum() + model.wide.sum()
            )
            dense.zero_grad()
            sparse.zero_grad()
            loss.backward()
            dense.step()
            sparse.step()
            watch.step(loss)
    assert "'ghost': it is a meta tensor" in caplog.text
    assert "gradient of 'words.weight' (sparse)" in caplog.text
    assert "ended" not in caplog.text
    norm = next(iter(watch.optimizers.values())).norm
    assert norm > 0


def test_a_model_without_gradients_and_no_model_at_all(caplog: pytest.LogCaptureFixture) -> None:
    @watch_training(**OPTIONS)
    def step(x: Tensor) -> Tensor:
        return x.sum()

    for _ in range(3):
        step(torch.ones(3))
    assert "no model found" in caplog.text
    assert not step.watch.alerts  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "word"),
    [({"warmup_steps": 0}, "warmup_steps"), ({"alert_window": "x"}, "alert_window"),
     ({"false_alarms_per_10k": 0}, "false_alarms"), ({"on_alert": 5}, "on_alert"),
     ({"narrow": "fp7"}, "number format"), ({"typo": 1}, "typo"), ({"lang": "de"}, "lang"),
     ({"folder": 3}, "folder"), ({"folder": ""}, "folder"), ({"writers": 5}, "writers"),
     ({"writers": ("run",)}, "writers")],
)  # fmt: skip
def test_wrong_settings_are_told_at_once(options: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        watch_training(**options)(lambda: None)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a Module"):
        Watch("model")  # type: ignore[arg-type]


_SCRIPT = """
import torch
from torch import nn
from torchstone import watch_training
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
factor = 1.0

@watch_training(warmup_steps=20, alert_window=50, folder=False, print_every=50, budget=10)
def train_step(model, batch):
    optimizer.zero_grad()
    loss = (model(batch) - torch.randn(32, 2)).square().mean() * factor
    loss.backward()
    optimizer.step()
    return loss

for i in range(120):
    factor = 500.0 if i == 100 else 1.0
    train_step(model, torch.randn(32, 4))
"""


def test_lines_appear_without_any_logging_set_up() -> None:
    result = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = result.stderr.splitlines()
    assert lines[0] == "[Monitor] watching: model argument 1 (Linear), optimizer optimizer (SGD)"
    assert any(line.startswith("[Monitor] Baseline established: {") for line in lines)
    assert any(
        line.startswith("[Monitor] Step 50 | grad_norm: ") and line.endswith("| Status: OK")
        for line in lines
    )
    alert = next(line for line in lines if line.startswith("[ALERT] Step 101 | grad_norm: "))
    assert "(baseline: " in alert
    assert alert.endswith("σ")
    assert "±" in alert
    assert result.stdout == ""


def test_nothing_is_left_behind() -> None:
    from torch.nn.utils import clip_grad
    from torch.optim import optimizer as module

    gc.collect()
    before = clip_grad._clip_grads_with_norm_, torch.amp.GradScaler.unscale_, 0
    Toy().watched(None, steps=3)
    after = (clip_grad._clip_grads_with_norm_, torch.amp.GradScaler.unscale_,
             len(module._global_optimizer_pre_hooks))  # fmt: skip
    assert before == after


def test_after_a_nan_its_first_operator_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def poison(toy: Toy) -> None:
        toy.model[4].register_forward_hook(lambda *call: call[-1] * float("nan"))

    alerts = Toy().watched(poison, at=40, steps=45, on_alert="skip")
    assert alerts[0].signal == "non_finite"
    line = poison.__code__.co_firstlineno + 1
    assert (
        f"`mul` at tests/watch/test_monitor.py:{line}; row 0, 1, 2, 3, 4 and 59 more" in caplog.text
    )


def _plain_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> Tensor:
    optimizer.zero_grad()
    x, y = _batch()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("change", ["half", "empty", "storage"])
def test_weights_that_change_their_memory_are_no_danger(change: str) -> None:
    model = nn.Linear(2048, 2048, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for step in range(6):
            if step == 3 and change == "half":
                model.half()
            elif step == 3 and change == "empty":
                model.weight.data = torch.empty(0)
            elif step == 3:
                model.weight.untyped_storage().resize_(0)
            if change == "half" or step < 3:
                model.weight.grad = torch.zeros_like(model.weight)
            else:
                model.weight.grad = None
            optimizer.step()
            watch.step(1.0)
    assert [a.line() for a in watch.alerts if a.signal == "non_finite"] == []


def test_a_watched_model_can_be_copied_and_pickled() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = watch_training(**OPTIONS)(_plain_step)
    for _ in range(3):
        step(model, optimizer)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    again = pickle.loads(pickle.dumps(model))
    again(torch.randn(2, 8))
    copy.deepcopy(model)(torch.randn(2, 8))


def test_a_forgotten_watch_lets_go_of_everything() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        step = watch_training(**OPTIONS)(_plain_step)
        step(model, optimizer)
        step(model, optimizer)
    forgotten = weakref.ref(step.watch)  # type: ignore[attr-defined]
    del step
    assert forgotten() is None, "at once, without the garbage collector"
    gc.collect()
    assert not model._forward_pre_hooks
    assert not model._load_state_dict_post_hooks
    seen = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert seen() is None


def test_another_model_through_the_same_function_is_watched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    step = watch_training(**OPTIONS)(_plain_step)
    for _ in range(2):
        model = _net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            step(model, optimizer)
    watch = step.watch  # type: ignore[attr-defined]
    [watched] = watch.optimizers.values()
    assert watched.optimizer is optimizer


def test_a_new_optimizer_takes_the_place_of_the_old() -> None:
    model = _net()
    step = watch_training(**OPTIONS)(_plain_step)
    for _ in range(4):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            step(model, optimizer)
    assert len(step.watch.optimizers) == 1  # type: ignore[attr-defined]


def test_skip_with_a_loss_scaler() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with Watch(model, optimizer, on_alert="skip", **OPTIONS) as watch:
        for step in range(60):
            optimizer.zero_grad()
            x, y = _batch()
            loss = F.cross_entropy(model(x), y) * (1e4 if step == 50 else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            watch.step(loss)
    assert "grad_norm" in {a.signal for a in watch.alerts}


def test_odd_inputs_of_a_model_are_let_through() -> None:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 4)

        def forward(self, adjacency: Tensor) -> Tensor:
            return self.net(torch.sparse.mm(adjacency, torch.ones(8, 8)))

    model = Graph()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.eye(8).to_sparse()).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert next(iter(watch.optimizers.values())).updates == 3


def test_a_step_that_is_no_plain_call_is_refused() -> None:
    async def later() -> None: ...

    def many() -> Any:
        yield 1

    for step in (later, many, classmethod(lambda cls: None)):
        with pytest.raises(UsageError, match="plain function"):
            watch_training(**OPTIONS)(step)


def test_gradients_set_by_hand_are_not_stale() -> None:
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(20):
            x, y = _batch()
            loss = F.cross_entropy(model(x), y)
            grads = torch.autograd.grad(loss, list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), grads, strict=True):
                parameter.grad = gradient
            optimizer.step()
            watch.step(loss)
    assert [a.line() for a in watch.alerts] == []


def test_a_writer_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def step(self, step: int, values: Any) -> None:
            raise OSError("no connection")

        def alert(self, alert: Any) -> None: ...

        def close(self) -> None: ...

    alerts = Toy().watched(_loud, at=80, steps=85, writers=(Broken(),))
    assert caplog.text.count("Broken is not written to any more: OSError: no connection") == 1
    assert "grad_norm" in {a.signal for a in alerts}


def test_a_scripted_model_and_a_late_sparse_layer_do_not_end_the_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = torch.jit.script(_net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    words = nn.Embedding(10, 4, sparse=True)
    with caplog.at_level(logging.INFO), Watch(model, optimizer, **OPTIONS) as watch:
        for step in range(12):
            if step == 7:
                optimizer.add_param_group({"params": list(words.parameters())})
            optimizer.zero_grad()
            loss = model(torch.randn(4, 8)).square().mean()
            if step >= 7:
                loss = loss + words(torch.tensor([1, 2])).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert "ended" not in caplog.text
    assert "(sparse)" in caplog.text


def test_gradients_of_another_dtype_than_their_weights_are_read_as_what_they_are() -> None:
    model = nn.Linear(64, 64, bias=False)
    model.weight.grad_dtype = torch.bfloat16
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(3):
            model.weight.grad = torch.full((64, 64), 0.5, dtype=torch.bfloat16)
            optimizers = watch.optimizers
            watch.before_step(optimizer)
            assert next(iter(optimizers.values())).norm == pytest.approx(32.0)
            watch.step(1.0)


def test_what_waits_is_judged_before_anyone_looks() -> None:
    """Short steps are judged a few at a time; nobody can tell from what they are shown."""
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = watch_training(warmup_steps=30, folder=False, clock=STILL)(_plain_step)
    for number in range(1, 61):
        if number == 58:
            for parameter in model.parameters():
                parameter.data.mul_(1e4)
        step(model, optimizer)
    told = step.watch.alerts
    assert told
    assert min(alert.step for alert in told) == 58


def test_a_watch_that_fails_still_lets_its_writers_go(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Writer:
        def step(self, step: int, values: dict[str, float]) -> None: ...
        def alert(self, alert: Any) -> None: ...
        def close(self) -> None:
            closed.append(True)

    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, writers=[Writer()], **OPTIONS) as watch:
        monkeypatch.setattr(watch._judge, "judge_waiting", lambda: 1 / 0)
        for _ in range(20):
            watch.step(_plain_step(model, optimizer))
    assert watch._broken
    assert closed == [True]


def test_a_hook_that_is_removed_while_it_is_called_does_no_harm() -> None:
    model = _net()
    with Watch(model, torch.optim.SGD(model.parameters(), lr=0.1), **OPTIONS) as watch:
        model.register_forward_pre_hook(lambda *_: watch.close(), prepend=True)
        assert model(torch.randn(2, 8)).shape[0] == 2


class _Lazy(dict[str, torch.Tensor]):
    def values(self) -> Any:
        raise KeyError("not yet")


class _Odd(nn.Module):
    """What a model may give that is hard to look at."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.image = nn.Parameter(torch.randn(8, 4))

    def forward(self, x: torch.Tensor) -> Any:
        if self.kind == "leaf":
            return self.image
        if self.kind == "huge":
            return (x @ self.image) * 1e25
        return _Lazy(y=x @ self.image)


@pytest.mark.parametrize("kind", ["leaf", "huge", "lazy"])
@pytest.mark.filterwarnings("error")
def test_outputs_that_are_hard_to_look_at_harm_nothing(kind: str) -> None:
    model = _Odd(kind)
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.param_groups[0]["initial_lr"] = None
    with Watch(model, optimizer, folder=False, clock=STILL) as watch:
        for _ in range(60):
            optimizer.zero_grad()
            output = model(torch.randn(4, 8))
            output = output["y"] if isinstance(output, dict) else output
            loss = (output.mean() * 1e-25) if kind == "huge" else output.pow(2).mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
        assert not watch._broken
    assert not model.image._backward_hooks


def test_many_gradients_at_once_do_not_end_the_watching() -> None:
    model = nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    with Watch(model, optimizer, folder=False, clock=STILL) as watch:
        for _ in range(20):
            optimizer.zero_grad()
            losses = model(torch.randn(4, 6)).pow(2).mean(0)
            torch.autograd.grad(
                losses, list(model.parameters()), torch.eye(2), is_grads_batched=True,
                retain_graph=True,
            )  # fmt: skip
            losses.sum().backward()
            optimizer.step()
            watch.step(losses.sum())
        assert not watch._broken


def test_passes_that_the_program_puts_together_are_not_lost() -> None:
    model = nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    with Watch(model, optimizer, folder=False, clock=STILL) as watch:
        for _ in range(80):
            kept = []
            for _ in range(2):
                optimizer.zero_grad()
                model(torch.randn(4, 6)).pow(2).mean().backward()
                kept.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
            for parameter, one, two in zip(model.parameters(), *kept, strict=True):
                parameter.grad = one + two
            optimizer.step()
            watch.step(torch.tensor(1.0))
    assert [a.signal for a in watch.alerts if a.signal == "lost_passes"] == []


def _told(model: nn.Module, shape: tuple[int, ...], between: Any, steps: int = 40) -> set[str]:
    """Signals that spoke while `between(step)` was called after every step."""
    optimizer = torch.optim.AdamW(model.parameters())
    with Watch(model, optimizer, folder=False, warmup_steps=20, clock=STILL) as watch:
        for step in range(steps):
            optimizer.zero_grad()
            loss = model(torch.randn(shape)).pow(2).mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
            between(step)
        return {alert.signal for alert in watch.alerts}


def test_weights_that_are_laid_out_anew_have_not_changed() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))

    def lay_out(step: int) -> None:
        if step == 20:
            model.to(memory_format=torch.channels_last)

    assert "changed_outside" not in _told(model, (4, 3, 8, 8), lay_out)


def test_steps_that_are_taken_back_move_nothing() -> None:
    model = _net()
    kept = model[0].weight.detach().clone()  # type: ignore[operator]

    def take_back(_: int) -> None:
        with torch.no_grad():
            model[0].weight.copy_(kept)  # type: ignore[operator]

    assert "unchanged_parameter" in _told(model, (16, 8), take_back)
    assert "unchanged_parameter" not in _told(_net(), (16, 8), lambda _: None)


def test_steps_judged_together_are_judged_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skip_a_few(toy: Toy) -> None:
        """Some gradients are missing, one step has no learning rate, one gradient is infinite."""
        count = 0

        def odd(model: torch.nn.Module) -> None:
            nonlocal count
            count += 1
            if count % 3 == 0:
                model[4].weight.grad = None  # type: ignore[index,union-attr]
            if count == 5:
                model[0].weight.grad.fill_(float("inf"))  # type: ignore[index,union-attr]
            toy.optimizer.param_groups[0]["lr"] = 0.0 if count % 7 == 0 else 3e-3

        toy.after_backward = odd

    lines, runs = [], []
    for together in (1, 16):
        monkeypatch.setattr("torchstone.watch.judge.judge._TOGETHER", together)
        folder = tmp_path / str(together)
        lines.append([alert.line() for alert in Toy().watched(skip_a_few, folder=folder)])
        runs.append(load_run(folder))
    assert lines[0]
    assert lines[0] == lines[1]
    assert runs[0].columns == runs[1].columns
    np.testing.assert_allclose(runs[0].scalars, runs[1].scalars, rtol=1e-12)
    for one, other in zip(runs[0].layers, runs[1].layers, strict=True):
        np.testing.assert_allclose(one[2], other[2], rtol=1e-6)


def test_inputs_that_cannot_be_looked_at_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Shy(dict[str, Tensor]):
        def values(self) -> Any:
            raise RuntimeError("not now")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, batch: Shy) -> Shy:
            return Shy(y=self.layer(batch["x"]))

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @watch_training(folder=False, clock=STILL)
    def step() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(Shy(x=torch.randn(8, 4)))["y"].square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    with caplog.at_level(logging.INFO):
        for _ in range(5):
            step()
        step.watch.close()  # type: ignore[attr-defined]
    for end in ("inputs", "outputs"):
        said = f"not watched: the model's {end} (RuntimeError: not now)"
        assert caplog.text.count(said) == 1


def _sum_up(model: nn.Module, optimizer: torch.optim.Optimizer) -> Tensor:
    """One step of learning to add eight numbers."""
    x = torch.randn(32, 8)
    loss: Tensor = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def test_a_restored_checkpoint_is_no_lost_state() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept: dict[str, Any] = {}
    with Watch(model, optimizer, **OPTIONS) as watch:
        for step in range(150):
            if step == 100:
                kept = copy.deepcopy({"m": model.state_dict(), "o": optimizer.state_dict()})
            if step == 121:  # between two sittings
                model.load_state_dict(kept["m"])
                optimizer.load_state_dict(kept["o"])
            watch.step(_sum_up(model, optimizer))
        assert "optimizer_age" not in [alert.signal for alert in watch.alerts]


def test_a_group_that_begins_to_move_was_not_stuck() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    groups = [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=1e-2)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for step in range(120):
            if step == 90:
                optimizer.param_groups[0]["lr"] = 1e-2
            watch.step(_sum_up(model, optimizer))
        assert "unchanged_parameter" not in [alert.signal for alert in watch.alerts]


def test_steps_that_a_scaler_leaves_out_lose_no_passes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=20)
    with Watch(model, optimizer, scaler=scaler, **OPTIONS) as watch:
        for _ in range(600):
            x = torch.randn(32, 8)
            loss = F.cross_entropy(model(x), x[:, :4].argmax(1))
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            if scaler.get_scale() > 2.0**16:  # as a narrow format would
                model[0].weight.grad[0, 0] = float("inf")
            scaler.step(optimizer)
            scaler.update()
            watch.step(loss.detach())
        assert "lost_passes" not in [alert.signal for alert in watch.alerts]


def test_a_small_last_batch_is_no_alarm() -> None:
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 128),
        nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    kinds = 0.35 * torch.randn(10, 64)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for step in range(600):
            y = torch.randint(0, 10, (4 if step % 40 == 39 else 64,))
            loss = F.cross_entropy(model(kinds[y] + torch.randn(len(y), 64)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss.detach())
        assert [alert.line() for alert in watch.alerts] == []


def test_angles_are_not_taken_over_steps_that_were_not_read(tmp_path: Path) -> None:
    toy = Toy()
    watch = Watch(toy.model, toy.optimizer, folder=tmp_path / "run", warmup_steps=20, clock=STILL)
    watch._budget.every = 2  # two of every four steps are read
    with watch:
        for _ in range(40):
            watch.step(toy.train_step(toy.next_batch()))
    turns = load_run(tmp_path / "run").column("turn")
    assert np.isnan(turns[::4]).all(), "the step before was not read"
    assert np.isfinite(turns[5::4]).all()


def test_an_embedding_of_rare_words_is_no_alarm() -> None:
    torch.manual_seed(0)
    words = 4000
    model = nn.Sequential(
        nn.Embedding(words, 16), nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, words)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    usual = torch.distributions.Categorical(probs=1 / torch.arange(1.0, words + 1))
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(300):
            text = usual.sample((4, 33))
            loss = F.cross_entropy(model(text[:, :-1]).reshape(-1, words), text[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss.detach())
        assert [alert.line() for alert in watch.alerts] == []


def test_another_input_size_is_named_also_where_the_batch_was_not_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    model = _net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, **OPTIONS, lang="en") as watch:
        for step in range(40):
            loss = model(torch.randn(64 if step > 20 else 16, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss.detach())
        for _ in range(6):  # a step without any input
            watch.step(loss.detach())
    assert caplog.text.count("input size changed to 64 × 8 values: relearning the baseline") == 1
    assert caplog.text.count("input size changed") == 1
