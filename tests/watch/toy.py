"""A small training program for signals to break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.watch.clocks import STILL
from torchstone.watch import Watch
from torchstone.watch.alerts import Alert


class Toy:
    """A classifier that learns a linear rule; every knob is one that a fault may turn."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 10),
        )  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.scaler: Any = None
        self.rule = torch.randn(16, 10)
        self.loss_factor = 1.0
        self.zero_grad = True
        self.steps = True
        self.narrow = "fp16"
        self.transform: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda x, y: (x, y)
        self.after_backward: Callable[[nn.Module], object] = lambda model: None
        self.after_step: Callable[[nn.Module], object] = lambda model: None

    def next_batch(self) -> tuple[Tensor, Tensor]:
        x = torch.randn(64, 16)
        return x, (x @ self.rule).argmax(1)

    def use_scaler(self) -> None:
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

    def use_tokens(self) -> None:
        """A sample is a bag of words, and its class is that of its first word."""
        self.model = nn.Sequential(nn.EmbeddingBag(40, 16), nn.Linear(16, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        words = torch.randint(0, 40, (1000, 64, 8))
        batches = iter(words)

        def next_batch() -> tuple[Tensor, Tensor]:
            x = next(batches)
            return x, x[:, 0] % 10

        self.next_batch = next_batch  # type: ignore[method-assign]

    def replace_last_layer(self) -> None:
        self.model[7] = nn.Linear(32, 10)

    def train_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        if self.zero_grad:
            self.model.zero_grad()
        loss = F.cross_entropy(self.model(batch[0]), batch[1]) * self.loss_factor
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        self.after_backward(self.model)
        if self.steps and self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        elif self.steps:
            self.optimizer.step()
        self.after_step(self.model)
        return loss.detach()

    def watched(
        self, fault: Callable[[Any], object] | None, at: int = 130, steps: int = 185, **options: Any
    ) -> list[Alert]:
        """The alerts of a run in which the fault strikes at step `at`."""
        options = {
            "warmup_steps": 60,
            "folder": False,
            "budget": 10,
            "narrow": self.narrow,
            "clock": STILL,
            **options,
        }
        watch = Watch(**options)
        watch.prepare(self.train_step, (), {})
        try:
            for step in range(steps):
                if fault is not None and step == at:
                    fault(self)
                batch = self.transform(*self.next_batch())
                watch.begin()
                loss = self.train_step(batch)
                watch.end(loss, batch)
        finally:
            watch.close()
        return watch.alerts
