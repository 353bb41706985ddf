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


def test_one_that_comes_before_the_others(training: Training) -> None:
    seen: list[str] = []
    subscriptions = [
        training.subscribe(lambda _: seen.append("first"), StepBegins),
        training.subscribe(lambda _: seen.append("zeroth"), StepBegins, before_others=True),
    ]
    run_program()
    for subscription in subscriptions:
        subscription.close()
    assert seen == ["zeroth", "first"]


def test_events_carry_what_they_are_about(training: Training) -> None:
    seen: dict[type[Event], Event] = {}
    subscription = training.subscribe(lambda event: seen.setdefault(type(event), event), *KINDS)
    model = nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader([1])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    model.zero_grad()
    loss = scaler.scale(model(torch.ones(1, 2)).sum())
    loss.backward()
    scaler.unscale_(optimizer)
    total = clip_grad_norm_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    file = io.BytesIO()
    state = model.state_dict()
    torch.save(state, file)
    assert model.load_state_dict(state).missing_keys == []
    subscription.close()
    assert seen[LossScaled] == LossScaled(scaler, loss)
    assert seen[GradientsCleared].holder is model  # type: ignore[attr-defined]
    for kind in (BackwardBegins, BackwardEnds):
        roots = seen[kind].roots  # type: ignore[attr-defined]
        assert (roots if isinstance(roots, torch.Tensor) else roots[0]) is loss
    clipped = seen[ClipBegins]
    assert isinstance(clipped, ClipBegins)
    assert (clipped.parameters[0] is model.weight, clipped.max_norm) == (True, 0.5)
    assert float(clipped.total_norm) == pytest.approx(float(total)) == pytest.approx(2**0.5)
    assert seen[ClipEnds] == ClipEnds(clipped.parameters, 0.5)
    for kind in (UnscaleBegins, UnscaleEnds, ScalerStepBegins, ScalerStepEnds):
        assert seen[kind] == kind(scaler, optimizer)
    for kind in (OptimizerMade, StepBegins, StepEnds):
        assert seen[kind] == kind(optimizer)
    assert seen[ScaleUpdates] == ScaleUpdates(scaler)
    assert seen[SchedulerMade] == SchedulerMade(scheduler)
    assert seen[SchedulerSteps] == SchedulerSteps(scheduler)
    assert seen[LoaderMade] == LoaderMade(loader)
    assert seen[StateLoads] == StateLoads(model, state)
    assert seen[SaveBegins] == SaveBegins(state, file)


def test_what_torch_gives_is_given(training: Training) -> None:
    subscription = training.subscribe(lambda _: None, *KINDS)
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), 3.0)
    norm = clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)
    optimizer = torch.optim.SGD([weight], 1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=1)
    found = scaler.step(optimizer, *[]) if scaler.scale(torch.ones(())) is not None else 0
    subscription.close()
    assert float(norm) == pytest.approx(18**0.5)
    assert found is None


def test_schedules_of_schedules(training: Training) -> None:
    """SequentialLR does not call the constructor that it is derived from."""
    made: list[SchedulerMade] = []
    steps: list[SchedulerSteps] = []
    subscriptions = [
        training.subscribe(made.append, SchedulerMade),
        training.subscribe(steps.append, SchedulerSteps),
    ]
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], 1.0)
    kinds = torch.optim.lr_scheduler
    parts = [kinds.ConstantLR(optimizer), kinds.ExponentialLR(optimizer, 0.5)]
    whole = kinds.SequentialLR(optimizer, parts, milestones=[1])
    assert [event.scheduler for event in made] == [*parts, whole]
    steps.clear()
    optimizer.step()
    whole.step()
    for subscription in subscriptions:
        subscription.close()
    assert steps[0].scheduler is whole


def test_a_sharded_scaler_is_followed_where_it_is_in_use() -> None:
    assert module.scaler_kinds()[0] is torch.amp.GradScaler
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    assert module.scaler_kinds() == [torch.amp.GradScaler, ShardedGradScaler]
