"""A scene is a small, real training program that a case may break in one place.

A file of cases holds functions marked with `@fault(...)` or `@benign(...)`:

    @fault("labels-shuffled", origin="…", models=("language", "images"))
    def shuffle(scene):                      # called once, just before step 300
        scene.transform = lambda x, y: (x, y.flip(0))

`when="start"` calls it before the first step instead. It may change anything a user's own code
could: the model, the optimizer, the schedule, the data, or the knobs of the scene. A benign case
is a change that belongs to healthy training, and must raise no alarm. `origin` names the public
origin (an issue, a paper, a peer's test) or the mechanism that the case stands for. `setup` is a
function that is called before the first step in the healthy control too (fp16, two groups, …).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from faults.models import KINDS

Break = Callable[["Scene"], None]


@dataclass(frozen=True)
class Case:
    """One fault or one benign change."""

    name: str
    kind: Literal["fault", "benign"]
    origin: str
    apply: Break
    models: tuple[str, ...]
    when: Literal["onset", "start"]
    setup: Break | None

    @property
    def onset(self) -> int:
        return ONSET if self.when == "onset" else 0


ONSET = 300
WITHIN = 50
"""A fault counts as found when an alarm comes within so many steps of its onset."""
ALL = ("language", "images", "series")


def fault(
    name: str, *, origin: str, models: tuple[str, ...] = ALL,
    when: Literal["onset", "start"] = "onset", setup: Break | None = None,
) -> Callable[[Break], Case]:  # fmt: skip
    """A fault that must be found."""
    return lambda apply: Case(name, "fault", origin, apply, models, when, setup)


def benign(
    name: str, *, origin: str, models: tuple[str, ...] = ALL,
    when: Literal["onset", "start"] = "onset", setup: Break | None = None,
) -> Callable[[Break], Case]:  # fmt: skip
    """A change that must stay silent."""
    return lambda apply: Case(name, "benign", origin, apply, models, when, setup)


@dataclass
class Scene:
    """The program: one model kind, one seed, and every knob a case may turn."""

    kind: str
    seed: int
    model: nn.Module = field(init=False)
    optimizer: torch.optim.Optimizer = field(init=False)
    scheduler: Any = None
    scaler: Any = None
    autocast: torch.dtype | None = None
    batch_size: int = 16
    clip: float | None = 1.0
    accumulate: int = 1
    zero_grad: bool = True
    do_step: bool = True
    evaluate_every: int = 0
    step: int = 0
    # pieces that a case may replace
    transform: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda x, y: (x, y)
    loss: Callable[[Tensor, Tensor], Tensor] = field(init=False)
    after_backward: Callable[[Scene], None] | None = None
    """Before clipping; gradients are there."""
    before_step: Callable[[Scene], None] | None = None
    """After clipping, before the optimizer steps."""
    after_step: Callable[[Scene], None] | None = None
    batch: Callable[[], tuple[Tensor, Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(self.seed)
        kind = KINDS[self.kind]
        self.model, self.optimizer, self.scheduler = kind.build()
        self.loss = kind.loss
        generator = torch.Generator().manual_seed(1000 + self.seed)
        source = kind.source(generator)
        self.batch = lambda: source(self.batch_size)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if self.autocast is None:
            return self.loss(self.model(x), y)
        with torch.autocast("cpu", self.autocast):
            return self.loss(self.model(x), y)

    def evaluate(self) -> None:
        self.model.eval()
        with torch.no_grad():
            self.forward(*self.batch())
        self.model.train()

    def train_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """What a user would write, and would decorate."""
        if self.zero_grad and self.step % self.accumulate == 0:
            self.optimizer.zero_grad()
        x, y = self.transform(*batch)
        loss = self.forward(x, y)
        whole = loss / self.accumulate
        (self.scaler.scale(whole) if self.scaler else whole).backward()
        if self.after_backward:
            self.after_backward(self)
        if (self.step + 1) % self.accumulate == 0 and self.do_step:
            if self.scaler:
                self.scaler.unscale_(self.optimizer)
            if self.clip:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            if self.before_step:
                self.before_step(self)
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            if self.scheduler:
                self.scheduler.step()
            if self.after_step:
                self.after_step(self)
        return loss.detach()

    def run(self, case: Case | None, steps: int, watched: Callable[..., Tensor]) -> list[float]:
        """Run the program with the case applied; `watched` is `train_step`, decorated or not."""
        losses = []
        if case and case.setup:
            case.setup(self)
        for self.step in range(steps):
            if case and self.step == case.onset:
                case.apply(self)
            if self.evaluate_every and self.step % self.evaluate_every == 0:
                self.evaluate()
            losses.append(float(watched(self.batch())))
        return losses
