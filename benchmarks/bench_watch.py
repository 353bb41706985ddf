"""`watch`: what one read costs, what a step costs, what is found, and what a long run leaves."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import logging
import os
import resource
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from faults.peers import PEERS
from faults.programs import PROGRAMS, alerts
from faults.score import Outcome, episodes, every_in, healthy, on_all_cores
from healthy.trainings import ASIDE, TUNING, episodes_per_10k, score
from torch import nn

from torchstone.watch import Watch
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.reading import Query

_READ = """
#include <stdint.h>
typedef float v __attribute__((vector_size(32)));
float read_all(const float *x, int64_t n) {
    v s[4] = {{0}};
    for (int64_t i = 0; i + 32 <= n; i += 32)
        for (int k = 0; k < 4; k++) s[k] += *(const v *)(x + i + 8 * k);
    return s[0][0] + s[1][1] + s[2][2] + s[3][3];
}
"""
_REPORTED_SEEDS = (3,)
_HEALTHY_SEEDS = (2, 3)
_HEALTHY_STEPS = 3000
_PROGRAM_STEPS = 1500
_LONG_STEPS = 100_000
_WARM_STEPS = 128  # warm-up of the monitors is over by then


def run() -> str:
    torch.set_num_threads(1)
    logging.getLogger("torchstone.watch").addHandler(logging.NullHandler())
    parts = [_pass(), _steps(), _detection(), _long()]
    return "\n".join(["## watch\n", *parts])


# -- the pass alone


def _pass() -> str:
    shapes = [(256, 256), (256,), (1024, 256), (1024,), (256, 1024), (256,)] * 12
    shapes += [(256, 256)] * 77
    whole = sum(int(np.prod(s)) for s in shapes)
    flat = torch.randn(10_000_000) * 1e-3
    gradients, start = [], 0
    for shape in shapes[:149]:
        size = int(np.prod(shape) * 10_000_000 / whole) // 32 * 32
        gradients.append(flat[start : start + size])
        start += size
    reader = HostReader(gradients)
    query = Query(np.array([1, 102, 113, 102, 110, 113, 117, 121], np.uint8), np.full(149, 65520.0))
    read = _built_read()
    used = start
    variants: dict[str, Callable[[], object]] = {
        "one read of the gradients (C, sum)": lambda: read(flat.data_ptr(), used),
        "torchstone: norm, largest, NaN, Inf, zero, 8 exponent counts": lambda: reader.read(
            1, gradients, query
        ),
        "`torch._foreach_norm` (norm only)": lambda: torch._foreach_norm(gradients),
        "`.norm().item()` for every parameter": lambda: [g.norm().item() for g in gradients],
    }
    masks = "NaN, Inf, zero and absmax with torch, for every parameter"
    slow: dict[str, Callable[[], object]] = {
        masks: lambda: [
            (g.isnan().any().item(), g.isinf().any().item(), (g == 0).sum().item(), g.abs().max().item())
            for g in gradients
        ],
    }  # fmt: skip
    # apart: it sweeps the caches that the others share
    times = {**_interleaved(variants, 41), **_interleaved(slow, 5)}
    base = statistics.median(times["one read of the gradients (C, sum)"])
    lines = ["### One pass over the gradients", "",
             f"{used / 1e6:.1f} M fp32 values in 149 tensors, CPU time, interleaved, median of 41.", "",
             "| | ms | × one read | spread |", "|---|--:|--:|--:|"]  # fmt: skip
    for name, values in times.items():
        middle = statistics.median(values)
        quarter = statistics.quantiles(values, n=4)
        lines.append(f"| {name} | {middle * 1e3:.2f} | {middle / base:.2f} | "
                     f"{quarter[0] / base:.2f}–{quarter[2] / base:.2f} |")  # fmt: skip
    return "\n".join([*lines, ""])


def _built_read() -> Callable[[int, int], float]:
    folder = Path(tempfile.mkdtemp())
    (folder / "read.c").write_text(_READ)
    subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(folder / "read.so"),
                    str(folder / "read.c")], check=True)  # fmt: skip
    function = ctypes.CDLL(str(folder / "read.so")).read_all
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    function.restype = ctypes.c_float
    return function  # type: ignore[no-any-return]


def _interleaved(variants: dict[str, Callable[[], object]], times: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(times + 3):
        names = list(variants) if turn % 2 else list(reversed(variants))
        for name in names:
            start = time.thread_time()
            variants[name]()
            if turn >= 3:
                found[name].append(time.thread_time() - start)
    return found


# -- whole steps


class _Loop:
    """One copy of the model and its optimizer, with what one variant adds to a step."""

    def __init__(self, width: int, variant: str) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Embedding(100, width),
            *[nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
              for _ in range(12)],
            nn.Linear(width, 100),
        )  # fmt: skip
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3, foreach=True)
        self.variant = variant
        self.watch: Watch | None = None
        self.close: Callable[[], object] = lambda: None
        getattr(self, f"_begin_{variant}", lambda: None)()

    def _begin_torchstone(self) -> None:
        self.watch = Watch(self.model, self.optimizer, folder=tempfile.mkdtemp(), budget=10)
        self.watch.__enter__()
        self.close = self.watch.close

    def _begin_hf(self) -> None:
        from transformers.debug_utils import DebugUnderflowOverflow

        DebugUnderflowOverflow(self.model)

    def _begin_wandb(self) -> None:
        import wandb

        os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
        run = wandb.init(project="bench", dir=tempfile.mkdtemp())
        run.watch(self.model, log="all", log_freq=1)
        self.close = run.finish

    def step(self, tokens: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        with torch.autograd.set_detect_anomaly(self.variant == "anomaly"):
            loss = nn.functional.cross_entropy(self.model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.variant == "items":
            [p.grad.norm().item() for p in self.model.parameters() if p.grad is not None]
        elif self.variant == "foreach":
            torch._foreach_norm([p.grad for p in self.model.parameters() if p.grad is not None])
        self.optimizer.step()
        if self.watch is not None:
            self.watch.step(loss, tokens)


_VARIANTS = {
    "none": "unwatched", "again": "unwatched, a second copy (noise)",
    "torchstone": "torchstone, everything on", "foreach": "`_foreach_norm`",
    "items": "`.norm().item()` for every parameter", "hf": "HF DebugUnderflowOverflow",
    "anomaly": "torch detect_anomaly", "wandb": "wandb.watch (all, every step, offline)",
}  # fmt: skip


def _steps() -> str:
    lines = ["### A whole training step", "",
             "12-layer transformer, 149 parameter tensors, AdamW (foreach) and clip_grad_norm_ in "
             "all; CPU time, interleaved in one process by stretches of 32 and 16 steps; the ratio "
             "is the median of paired ratios to the mean of the two unwatched copies.", "",
             "| | d = 32, 32 tokens | d = 256, 128 tokens |", "|---|--:|--:|"]  # fmt: skip
    small, large = _ratios(32, 32, 32, 30), _ratios(256, 128, 16, 6)
    for name, title in _VARIANTS.items():
        lines.append(f"| {title} | {small[name]} | {large[name]} |")
    return "\n".join([*lines, ""])


def _ratios(width: int, tokens: int, steps: int, stretches: int) -> dict[str, str]:
    """Steps follow each other as in a real run, so that caches are as warm as they would be."""
    warm = _WARM_STEPS // steps
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        loops = {name: _Loop(width, name) for name in _VARIANTS}
        times: dict[str, list[float]] = {name: [] for name in loops}
        for turn in range(stretches + warm):
            batches = [torch.randint(0, 100, (1, tokens)) for _ in range(steps)]
            for name, loop in _order(loops, turn):
                few = name in ("wandb", "anomaly", "hf")  # the slow ones are soon seen as slow
                some = batches[:2] if few else batches
                start = time.thread_time()
                for batch in some:
                    loop.step(batch)
                times[name].append((time.thread_time() - start) / len(some))
        for loop in loops.values():
            loop.close()
    both = np.array([times["none"], times["again"]])[:, warm:]
    base = both.mean(axis=0)  # one copy alone is a noisy measure
    found = {}
    for name, values in times.items():
        ratios = np.array(values[warm:]) / base
        found[name] = f"{np.median(ratios):.3f} ×"
    found["none"] = f"{np.median(base) * 1e3:.1f} ms"
    gc.collect()
    return found


def _order(loops: dict[str, _Loop], turn: int) -> Iterator[tuple[str, _Loop]]:
    items = list(loops.items())
    yield from items if turn % 2 else reversed(items)


# -- what is found


def _detection() -> str:
    warnings.filterwarnings("ignore")
    monitors = ["torchstone", *PEERS]
    groups = {
        "by the author": "cases",
        "two ranks, by the author": "ranks",
        "blind, first set": "held_out",
        "blind, second set": "blind",
        "blind, third set": "blind_3",
        "blind, fourth set": "blind_4",
        "blind, fifth set": "blind_5",
        "blind, sixth set": "blind_6",
        "blind, seventh set": "blind_7",
        "blind, eighth set": "blind_8",
    }
    lines = ["### What is found", "",
             "Faults planted one at a time in three kinds of models (benchmarks/faults), each with "
             "a same-seed healthy stretch of 300 steps before it; found: an alarm within 50 steps. "
             f"Limits were set on other seeds than {', '.join(map(str, _REPORTED_SEEDS))}, which is "
             "reported here. The blind sets were written without sight of the detectors. "
             "After each of the first seven was scored the detectors were changed for what it showed, so their "
             "rows are no blind figures; docs/decisions/0011 has those from before. Nothing was changed for "
             "the eighth set: its row is one.", "",
             "| | " + " | ".join(monitors) + " |", "|---|" + "--:|" * len(monitors)]  # fmt: skip
    missed: list[str] = []
    for title, folder in groups.items():
        outcomes = every_in(folder, _REPORTED_SEEDS)
        faults = [o for o in outcomes if o.case.kind == "fault"]
        benign = [o for o in outcomes if o.case.kind == "benign"]
        lines.append(_row(f"faults found, {title}: {len({o.case.name for o in faults})} faults, {len(faults)} runs",
                          [f"{sum(o.found(m) for o in faults) / max(len(faults), 1):.2f}" for m in monitors]))  # fmt: skip
        lines.append(_row(f"benign changes with an alarm, {title}: {len(benign)} runs",
                          [str(sum(_loud(o, m) for o in benign)) for m in monitors]))  # fmt: skip
        missed += [
            f"{o.case.name} ({o.model}, seed {o.seed})" for o in faults if not o.found("torchstone")
        ]
        missed += [
            f"alarm on {o.case.name} ({o.model}, seed {o.seed}): {o.said[:120]}"
            for o in benign
            if _loud(o, "torchstone")
        ]
    jobs = [(m, seed) for m in ("language", "images", "series") for seed in _HEALTHY_SEEDS]
    steps = _HEALTHY_STEPS * len(jobs)
    told_of = on_all_cores(_healthy, jobs)
    counts = {monitor: sum(one[monitor] for one in told_of) for monitor in monitors}
    lines.append(_row(f"false-alarm episodes in 10 k healthy steps ({steps} steps)",
                      [f"{counts[m] / steps * 1e4:.1f}" for m in monitors]))  # fmt: skip
    told = "Not found, or false: " + ("; ".join(missed) if missed else "none") + "."
    return "\n".join([*lines, "", told, "", _programs(), "", _trainings(), ""])


def _programs() -> str:
    """What is said of healthy programs of other kinds than the three models."""
    jobs = [(name, seed) for name in PROGRAMS for seed in _HEALTHY_SEEDS]
    steps = _PROGRAM_STEPS * len(jobs)
    told = on_all_cores(_program, jobs)
    count = sum(len(episodes([step for step, _ in one])) for one in told)
    said = [f"{name}, seed {seed}: {line}" for (name, seed), one in zip(jobs, told, strict=True)
            for _, line in one]  # fmt: skip
    return (f"Healthy programs of {len(PROGRAMS)} other kinds (benchmarks/faults/programs.py), "
            f"{steps:,} steps: {count} alarm episodes of torchstone"
            + (": " + "; ".join(said) if said else "") + ".")  # fmt: skip


def _trainings() -> str:
    """What is said of ordinary trainings, apart for those that limits were set without."""
    lines = ["Ordinary healthy trainings (benchmarks/healthy): alert episodes per 10,000 steps.", "",
             "| | trainings | steps | episodes per 10k |", "|---|--:|--:|--:|"]  # fmt: skip
    for title, chosen in (("limits set with these", TUNING), ("held aside", ASIDE)):
        told = score(chosen, (0,))
        steps = sum(one.training.steps for one in told)
        lines.append(f"| {title} | {len(told)} | {steps:,} | {episodes_per_10k(told):.2f} |")
    return "\n".join(lines)


def _healthy(job: tuple[str, int]) -> dict[str, int]:
    torch.set_num_threads(1)
    return healthy(*job, _HEALTHY_STEPS)


def _program(job: tuple[str, int]) -> list[tuple[int, str]]:
    torch.set_num_threads(1)
    return [(alert.step, alert.line()) for alert in alerts(*job, _PROGRAM_STEPS)]


def _loud(outcome: Outcome, monitor: str) -> bool:
    return bool(outcome.early.get(monitor)) or outcome.first.get(monitor) is not None


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


# -- a long run


def _long() -> str:
    folder = Path(tempfile.mkdtemp())
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(40)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    sizes: list[float] = []
    with contextlib.redirect_stderr(io.StringIO()):
        watch = Watch(model, optimizer, folder=folder, budget=10, print_every=10**9)
        with watch:
            for step in range(_LONG_STEPS):
                for parameter in model.parameters():
                    parameter.grad = torch.randn_like(parameter)
                optimizer.step()
                watch.step(1.0 + 0.01 * float(torch.randn(())))
                if step in (_LONG_STEPS // 10, _LONG_STEPS - 1):
                    gc.collect()
                    sizes.append(_resident())
    written = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return "\n".join([
        "### A long run", "", "| | |", "|---|--:|",
        f"| steps, 80 parameter tensors | {_LONG_STEPS:,} |",
        f"| memory at the end less that at a tenth | {(sizes[1] - sizes[0]) / 2**20:+.1f} MiB |",
        f"| run folder | {written / 1e6:.1f} MB |", "",
    ])  # fmt: skip


def _resident() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return float(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


__all__: list[Any] = ["run"]
