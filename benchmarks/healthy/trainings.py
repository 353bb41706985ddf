"""The list of trainings, and how many alert episodes each raises.

Every third training of the list is held aside: limits are set with the others in sight, and the ones
aside are scored once, afterwards. `python -m healthy.trainings tuning|aside` prints what was said.
"""

from __future__ import annotations

import contextlib
import io
import math
import multiprocessing
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch
from torch import nn

from healthy.optimizers import OPTIMIZERS, SCHEDULES, ScheduleFree
from healthy.tasks import TASKS


@dataclass(frozen=True)
class Training:
    """A task with an optimizer, a schedule and what programs do beside."""

    task: str
    optimizer: str
    rate: float
    schedule: str
    steps: int = 2500
    clip: float = 0.0
    evaluate_every: int = 0
    """Steps between two evaluations, in evaluation mode and without gradients."""
    accumulate: int = 1

    @property
    def name(self) -> str:
        return f"{self.task}, {self.optimizer}, {self.schedule}"


TRAININGS = (
    Training("noisy classes", "momentum", 0.05, "cosine", 3000),
    Training("text", "AdamW", 3e-3, "warm-up and cosine", 2000, clip=1.0),
    Training("clean classes", "AdamW, default", 1e-3, "linear to zero"),
    Training("function", "Adam", 3e-3, "cosine", 3000),
    Training("pictures", "momentum", 0.1, "one cycle", 2000, evaluate_every=250),
    Training("small set", "AdamW", 1e-3, "constant", 3000),
    Training("noisy function", "schedule-free AdamW", 3e-3, "constant", evaluate_every=200),
    Training("copies", "AdamW", 2e-3, "one cycle", 2000, clip=1.0),
    Training("autoencoder", "Adam", 2e-3, "restarts", 3000),
    Training("linear", "SGD", 0.05, "cosine", 3000),
    Training("clean pictures", "Adam", 1e-3, "constant", 2000, evaluate_every=100),
    Training("waves", "Adam", 3e-3, "linear to zero", 2000, clip=1.0),
    Training("text", "Lion", 3e-4, "cosine", 2000, clip=1.0),
    Training("small set", "momentum", 0.02, "cosine", 3000, evaluate_every=300),
    Training("noisy function", "momentum", 0.02, "restarts", 3000),
    Training("normalised", "AdamW, default", 2e-3, "one cycle", 3000),
    Training("linear", "Adam", 0.01, "exponential", 3000),
    Training("pictures", "schedule-free SGD", 0.3, "constant", 2000, evaluate_every=100),
    Training("function", "momentum", 0.02, "steps", 3000),
    Training("text", "schedule-free AdamW", 3e-3, "constant", 2000, evaluate_every=250),
    Training("noisy classes", "Adam", 1e-3, "trapezoid"),
    Training("clean classes", "nesterov", 0.05, "one cycle"),
    Training("waves", "RMSprop", 1e-3, "cosine", 2000),
    Training("autoencoder", "AdamW", 2e-3, "cosine", 3000),
    Training("copies", "Adam", 1e-3, "constant", 2500),
    Training("noisy classes", "Lion", 2e-4, "linear to zero"),
    Training("pictures", "AdamW", 2e-3, "cosine", 2000, evaluate_every=200),
    Training("linear", "momentum", 0.02, "constant", 3000),
    Training("small set", "Adam", 1e-3, "one cycle", 3000),
    Training("function", "AdamW, default", 3e-3, "warm-up, stable, decay", 3000),
    Training("normalised", "momentum", 0.05, "doubling restarts", 3000, evaluate_every=500),
    Training("noisy function", "AdamW", 3e-3, "polynomial", 3000),
    Training("text", "AdamW, default", 2e-3, "warm-up, stable, decay", 2000, accumulate=2),
    Training("autoencoder", "schedule-free AdamW", 3e-3, "constant", evaluate_every=150),
    Training("clean pictures", "momentum", 0.02, "linear to zero", 2000),
    Training("noisy classes", "Adagrad", 0.02, "constant"),
    Training("clean classes", "SGD", 0.1, "exponential", 3000),
    Training("waves", "AdamW", 2e-3, "cyclic", 2000),
    Training("linear", "Lion", 1e-3, "cosine to a tenth", 2500),
    Training("normalised", "NAdam", 1e-3, "inverse root"),
    Training("function", "RMSprop", 5e-4, "one cycle", 3000),
    Training("copies", "AdamW, default", 2e-3, "cosine", 2000, clip=1.0),
)
ASIDE = TRAININGS[2::3]
TUNING = tuple(training for training in TRAININGS if training not in ASIDE)


@dataclass(frozen=True)
class Told:
    """What was said of one training."""

    training: Training
    seed: int
    episodes: int
    lines: tuple[str, ...]
    loss: tuple[float, float]
    """Means of the first and the last fifty steps: a training that does not learn proves nothing."""


def run_training(training: Training, seed: int) -> Told:
    """Train once, watched with the default settings."""
    from torchstone.watch import Watch

    torch.manual_seed(seed)
    task = TASKS[training.task]
    model = task.model()
    optimizer = OPTIMIZERS[training.optimizer](model.parameters(), training.rate)
    make = SCHEDULES[training.schedule]
    updates = training.steps // training.accumulate
    scheduler = make(optimizer, updates) if make else None
    batch = task.source(torch.Generator().manual_seed(1000 + seed))
    losses: list[float] = []
    # time would make the score a matter of luck, so the budget is out of the way
    watch = Watch(model, optimizer, folder=False, budget=10, print_every=10**9)
    with contextlib.redirect_stderr(io.StringIO()), watch:
        for step in range(training.steps):
            if training.evaluate_every and step % training.evaluate_every == 0:
                _evaluate(model, optimizer, batch(task.batch_size)[0])
            x, y = batch(task.batch_size)
            if step % training.accumulate == 0:
                optimizer.zero_grad()
            loss = task.loss(model(x), y)
            (loss / training.accumulate).backward()
            if step % training.accumulate == training.accumulate - 1:
                if training.clip:
                    nn.utils.clip_grad_norm_(model.parameters(), training.clip)
                optimizer.step()
                if scheduler is not None:
                    scheduler.step()
            losses.append(float(loss.detach()))
            watch.step(loss, (x, y))
        told = tuple(alert.line() for alert in watch.alerts)
        episodes = int(watch.summary()["episodes"])
    ends = math.fsum(losses[:50]) / 50, math.fsum(losses[-50:]) / 50
    return Told(training, seed, episodes, told, ends)


def _evaluate(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    model.eval()
    if isinstance(optimizer, ScheduleFree):
        optimizer.eval()
    with torch.no_grad():
        model(x)
    model.train()
    if isinstance(optimizer, ScheduleFree):
        optimizer.train()


def score(trainings: tuple[Training, ...], seeds: tuple[int, ...]) -> list[Told]:
    """Every training with every seed, on all cores."""
    jobs = [(TRAININGS.index(training), seed) for training in trainings for seed in seeds]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(_one, jobs))


def _one(job: tuple[int, int]) -> Told:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    return run_training(TRAININGS[job[0]], job[1])


def episodes_per_10k(told: list[Told]) -> float:
    """Alert episodes in ten thousand steps; all are false here."""
    return 1e4 * sum(one.episodes for one in told) / sum(one.training.steps for one in told)


def main() -> None:
    chosen = {"tuning": TUNING, "aside": ASIDE}[sys.argv[1]]
    told = score(chosen, tuple(int(seed) for seed in sys.argv[2:]) or (0,))
    for one in told:
        print(f"{one.episodes}  {one.training.name}, seed {one.seed}"
              f"  loss {one.loss[0]:.3g} → {one.loss[1]:.3g}")  # fmt: skip
        for line in one.lines:
            print(f"     {line}")
    steps = sum(one.training.steps for one in told)
    print(f"{episodes_per_10k(told):.2f} episodes in 10k steps ({steps} steps)")


if __name__ == "__main__":
    main()
