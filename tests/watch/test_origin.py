"""The operator that NaN comes from, found by running the batch again with the weights of its step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.watch.clocks import STILL
from torchstone.watch import Watch, watch_training
from torchstone.watch.after.answer import run_answer
from torchstone.watch.record.runfile import load_run

HERE = "tests/watch/test_origin.py"


class Divides(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x / x.norm(dim=1, keepdim=True)  # the line that divides
        return self.second(torch.relu(self.first(self.norm(x))))


class TakesRoots(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x).square().sum(1).sqrt()  # the line of the root


def line_of(words: str) -> str:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return f"test_origin.py:{next(i for i, text in enumerate(lines, 1) if text.endswith(words))}"


def train(model: nn.Module, data: Tensor, folder: Path | bool = False, **more: Any) -> Watch:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    watch = Watch(model, optimizer, folder=folder, clock=STILL, lang="en")
    for name, value in more.items():
        setattr(watch._budget, name, value)
    with watch:
        for x in data:
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    return watch


def data(steps: int = 12) -> Tensor:
    return torch.randn(steps, 16, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("every", [1, 16])
def test_line_operator_and_rows_of_a_division(
    every: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    given = data()
    given[9, [3, 7]] = 0
    train(Divides(), given, tmp_path / "run", every=every)
    (said,) = [text for text in caplog.messages if "first non-finite value" in text]
    assert "`div` at" in said
    assert line_of("# the line that divides") in said
    assert "row 3, 7 of 16" in said
    assert "(16, 1): 0 to" in said
    answer = run_answer(load_run(tmp_path / "run"), None)
    assert "Step 10: first non-finite value: `div`" in answer.lines[0].en
    assert "第 10 步：第一个非有限值" in answer.lines[0].zh
    loss = next(tile for tile in answer.tiles if tile.label.en == "loss")
    assert loss.value == "NaN"
    assert "since step 10" in loss.note.en  # type: ignore[union-attr]


def test_a_root_of_zero_is_finite_forward_and_not_backward(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    given = data()
    given[5, 2] = 0
    train(TakesRoots(), given)
    (said,) = [text for text in caplog.messages if "first non-finite value" in text]
    assert line_of("# the line of the root") in said
    assert "in its backward pass" in said
    assert "row 2 of 16" in said


def test_a_batch_that_holds_nan_is_named_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    given = data()
    given[5, 4, 1] = float("nan")
    train(TakesRoots(), given)
    assert "the model's input already holds NaN or infinity, in row 4 of 16" in caplog.text


def test_running_it_again_changes_nothing_of_the_training() -> None:
    """Buffers, random numbers and gradients: the same as in a run that nobody watches."""

    def run(watched: bool) -> tuple[Tensor, Tensor, Tensor]:
        torch.manual_seed(0)
        model = Divides()
        given = data()
        given[9, 3] = 0
        if watched:
            train(model, given[:10])
        else:
            optimizer = torch.optim.Adam(model.parameters(), 1e-3)
            for x in given[:10]:
                loss = model(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return model.norm.running_mean.clone(), model.first.weight.detach(), torch.rand(3)  # type: ignore[union-attr]

    for one, two in zip(run(True), run(False), strict=True):
        assert torch.equal(one.nan_to_num(7.0), two.nan_to_num(7.0))


def test_weights_that_are_spoilt_already_are_not_blamed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    model = TakesRoots()
    with torch.no_grad():
        model.first.weight[0, 0] = float("nan")
    train(model, data())
    assert "the weights already hold NaN or infinity" in caplog.text
    assert "first non-finite value" not in caplog.text


def test_a_loss_that_is_made_outside_of_the_model(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with Watch(model, optimizer, folder=False, clock=STILL, lang="en") as watch:
        for step, x in enumerate(data()):
            loss = (model(x).square() - (1e9 if step == 5 else -1.0)).log().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert "look at the loss" in caplog.text


def normalise(x: Tensor) -> Tensor:
    return x / x.norm(dim=1, keepdim=True)  # the line before the model


@pytest.mark.parametrize("where", ["before", "after"])
def test_what_is_done_before_and_after_the_model_is_part_of_the_step(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The step's own code is run again up to its backward pass, and leaves nothing behind."""
    caplog.set_level("INFO")
    printed: list[int] = []

    def run(decorate: Any) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        @decorate
        def train_step(model: nn.Module, x: Tensor) -> Tensor:
            optimizer.zero_grad()
            out = model(normalise(x) if where == "before" else x)
            kept = out.sum() * 0 if where == "before" else normalise(x).sum() * 0
            loss = (out + torch.rand(())).square().mean() + kept
            loss.backward()
            printed.append(1)
            optimizer.step()
            return loss

        given = data(8)
        given[5, 4] = 0
        for x in given[:6]:
            train_step(model, x)
        return [item.grad for item in model.parameters()] + [torch.rand(1)]

    plain = run(lambda function: function)
    watched = run(watch_training(folder=False, lang="en", clock=STILL))
    (said,) = [text for text in caplog.messages if "first non-finite value" in text]
    assert line_of("# the line before the model") in said
    assert "row 4 of 16" in said
    assert all(torch.equal(a, b) or a.isnan().equal(b.isnan()) for a, b in zip(plain, watched, strict=True))  # fmt: skip
    assert len(printed) == 12, "a step that is run again ends at its backward pass"


def test_a_step_that_takes_its_own_batch_is_not_run_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    given = data(8)
    given[5, 4] = 0
    stream = iter(given)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @watch_training(folder=False, lang="en", clock=STILL)
    def train_step(model: nn.Module) -> Tensor:
        optimizer.zero_grad()
        loss = model(normalise(next(stream))).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(8):
        train_step(model)  # one more would end the stream
    assert "the model's input already holds NaN or infinity, in row 4 of 16" in caplog.text
