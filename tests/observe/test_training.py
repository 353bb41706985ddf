"""Events of a training loop: each once, in order, to every subscriber, and nothing stays behind."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad, clip_grad_norm_

from torchstone.observe import training as module
from torchstone.observe.training import (
    BackwardBegins,
    BackwardEnds,
    ClipBegins,
    ClipEnds,
    Event,
    GradientsCleared,
    LoaderMade,
    LossScaled,
    OptimizerMade,
    SaveBegins,
    ScalerStepBegins,
    ScalerStepEnds,
    ScaleUpdates,
    SchedulerMade,
    SchedulerSteps,
    StateLoads,
    StepBegins,
    StepEnds,
    Training,
    UnscaleBegins,
    UnscaleEnds,
)

KINDS = tuple(module._INSTALLED_BY)
REPLACED = (
    (torch.optim.Optimizer, "__init__"),
    (torch.optim.Optimizer, "zero_grad"),
    (nn.Module, "zero_grad"),
    (torch.autograd, "backward"),
    (clip_grad, "_clip_grads_with_norm_"),
    (torch.amp.GradScaler, "scale"),
    (torch.amp.GradScaler, "unscale_"),
    (torch.amp.GradScaler, "step"),
    (torch.amp.GradScaler, "update"),
    (torch.optim.lr_scheduler.LRScheduler, "__init__"),
    (torch.optim.lr_scheduler.LRScheduler, "step"),
    (torch.optim.lr_scheduler.SequentialLR, "__init__"),
    (torch, "save"),
    (nn.Module, "load_state_dict"),
    (torch.utils.data.DataLoader, "__init__"),
)


def attributes() -> list[object]:
    return [vars(holder)[name] for holder, name in REPLACED]


@pytest.fixture
def training() -> Iterator[Training]:
    before = attributes()
    yield Training()
    assert attributes() == before, "something of torch was left replaced"


def run_program() -> None:
    torch.utils.data.DataLoader([1])
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    optimizer.zero_grad()
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    torch.save(model.state_dict(), io.BytesIO())
    model.load_state_dict(model.state_dict())


IN_ORDER = [
    LoaderMade, OptimizerMade, SchedulerMade, GradientsCleared, LossScaled, BackwardBegins, BackwardEnds,
    UnscaleBegins, UnscaleEnds, ClipBegins, ClipEnds, ScalerStepBegins, StepBegins, StepEnds, ScalerStepEnds,
    ScaleUpdates, SchedulerSteps, SaveBegins, StateLoads,
]  # fmt: skip


def test_every_event_comes_once_and_in_order(training: Training) -> None:
    seen: list[Event] = []
    subscription = training.subscribe(seen.append, *KINDS)
    run_program()
    subscription.close()
    assert [type(event) for event in seen] == IN_ORDER
    assert set(IN_ORDER) == set(KINDS), "an event that no program of this test makes"
    run_program()
    assert len(seen) == len(IN_ORDER), "a closed subscription gets nothing"


def test_subscribers_are_called_in_the_order_in_which_they_came(training: Training) -> None:
    seen: list[str] = []
    first = training.subscribe(lambda _: seen.append("first"), StepBegins)
    second = training.subscribe(lambda _: seen.append("second"), StepBegins)
    run_program()
    assert seen == ["first", "second"]
    first.close()
    run_program()
    assert seen == ["first", "second", "second"]
    second.close()


def test_only_what_is_asked_for_is_replaced(training: Training) -> None:
    before = attributes()
    subscription = training.subscribe(lambda _: None, ClipBegins)
    changed = [
        pair for pair, a, b in zip(REPLACED, before, attributes(), strict=True) if a is not b
    ]
    assert changed == [(clip_grad, "_clip_grads_with_norm_")]
    subscription.close()
    subscription.close()


def test_one_of_two_events_of_a_function_may_go(training: Training) -> None:
    begins: list[Event] = []
    ends = training.subscribe(lambda _: None, ClipEnds)
    other = training.subscribe(begins.append, ClipBegins)
    ends.close()
    run_program()
    other.close()
    assert len(begins) == 1


def test_what_a_subscriber_raises_goes_to_the_program(training: Training) -> None:
    def stop(_: Event) -> None:
        raise InterruptedError

    subscription = training.subscribe(stop, StepBegins)
    with pytest.raises(InterruptedError):
        run_program()
    subscription.close()


def test_clipping_of_one_tensor_and_of_a_generator(training: Training) -> None:
    seen: list[ClipBegins] = []
    subscription = training.subscribe(seen.append, ClipBegins)
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.full((3,), 2.0)
    clip_grad_norm_(weight, 1.0)
    clip_grad_norm_((item for item in [weight]), 1.0)
    subscription.close()
    assert [event.parameters[0] is weight for event in seen] == [True, True]
    assert float(weight.grad.norm()) == pytest.approx(1.0, abs=1e-5)


def test_the_first_value_of_a_schedule_is_no_step_of_the_program(training: Training) -> None:
    seen: list[Event] = []
    subscription = training.subscribe(seen.append, SchedulerSteps)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1)
    chained = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    assert not seen
    optimizer.step()
    chained.step()
    subscription.close()
    assert len(seen) == 1


def test_what_is_followed_still_does_its_work(training: Training) -> None:
    subscription = training.subscribe(lambda _: None, *KINDS)
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file)
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    loss = scaler.scale(weight.sum())
    assert float(loss.detach()) == 16.0
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    subscription.close()
    assert weight.tolist() == [0.5, 0.5]
    assert scaler.get_scale() == 16.0
    file.seek(0)
    assert torch.load(file)["a"].tolist() == [1.0, 1.0]


def test_events_cannot_be_changed() -> None:
    for kind in KINDS:
        assert kind.__dataclass_params__.frozen, kind  # type: ignore[attr-defined]


def test_whether_anyone_listens(training: Training) -> None:
    assert not training.wants(StepEnds)
    subscription = training.subscribe(lambda _: None, StepEnds)
    assert training.wants(StepEnds)
    assert not training.wants(StepBegins)
    subscription.close()
