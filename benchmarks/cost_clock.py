"""Times and memory of the counting itself, each in a process of its own; one JSON object out.

python benchmarks/cost_clock.py pass MODEL ROUNDS     bare pass, FlopCounterMode, ours: CPU seconds
python benchmarks/cost_clock.py step MODEL            cost of a training step, from a fresh start
python benchmarks/cost_clock.py memory MODEL ROUNDS   peak memory beside torch's MemTracker
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parent))

from cost_models import SUBJECTS

from torchstone.cost import measure_cost
from torchstone.cost.counting.engine import run


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, foreach=True)


def passed(model: nn.Module, inputs: dict[str, Tensor]) -> None:
    """Forward and backward; what the model returns lives until the end, as in a training loop."""
    output = model(**inputs)
    values = output if isinstance(output, Tensor) else list(output.values())
    ends = [item for item in tree_leaves(values) if isinstance(item, Tensor)]
    ends = [item for item in ends if item.requires_grad]
    torch.autograd.backward(ends, [torch.empty_like(item) for item in ends])


def seconds(work: Callable[[], object], model: nn.Module) -> float:
    start = time.process_time()
    work()
    spent = time.process_time() - start
    model.zero_grad(set_to_none=True)
    return spent


def interleaved(
    works: dict[str, Callable[[], object]], model: nn.Module, rounds: int
) -> dict[str, list[float]]:
    """CPU seconds of every kind of work, in turns; the first turn fills caches and is dropped."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            found[name].append(seconds(work, model))
    return {name: values[1:] for name, values in found.items()}


def time_pass(name: str, rounds: int) -> dict[str, Any]:
    subject = SUBJECTS[name]()
    model, inputs = subject.build().train(), subject.tensors()

    def counted() -> None:
        with FlopCounterMode(display=False):
            passed(model, inputs)

    works: dict[str, Callable[[], object]] = {
        "bare": lambda: passed(model, inputs),
        "flop_counter": counted,
        "full": lambda: run(model, inputs, train=True, replay=False),
        "replayed": lambda: run(model, inputs, train=True),
    }
    return interleaved(works, model, rounds)


def time_step(name: str) -> dict[str, Any]:
    """Nothing is warm but the imports: those of torch, transformers and Torchstone."""
    subject = SUBJECTS[name]()
    SUBJECTS[name](layers=4).build()  # transformers imports a model's code when it is first named
    start = time.process_time()
    model = subject.build()
    built = time.process_time()
    report = measure_cost(model, subject.tensors(), train=True, optimizer="adamw")
    done = time.process_time()
    return {
        "build": built - start,
        "count": done - built,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "flops": report.total["flops"],
        "params": report.total["params"],
        "peak_memory_bytes": report.total["peak_memory_bytes"],
    }


def compare_memory(name: str, rounds: int) -> dict[str, Any]:
    """One training step with AdamW, attention unfused in both."""
    subject = SUBJECTS[name]()
    model, inputs = subject.build().train(), subject.tensors()
    peaks: dict[str, int] = {}

    def tracked() -> None:
        optimizer = adamw(model.parameters())
        tracker = MemTracker()
        tracker.track_external(model, optimizer, *inputs.values())
        with tracker:
            passed(model, inputs)
            optimizer.step()
        snapshot = tracker.get_tracker_snapshot("peak")
        peaks["tracker"] = snapshot[torch.device("meta")]["Total"]

    def ours(replay: bool) -> None:
        cost = run(model, inputs, train=True, optimizer=adamw, fused=False, replay=replay)
        peaks["replayed" if replay else "full"] = cost.memory.peak

    works: dict[str, Callable[[], object]] = {
        "bare": lambda: passed(model, inputs),
        "tracker": tracked,
        "full": lambda: ours(False),
        "replayed": lambda: ours(True),
    }
    return {"seconds": interleaved(works, model, rounds), "peaks": peaks}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    torch.set_num_threads(1)
    what, name, *rest = sys.argv[1:]
    if what == "pass":
        found = time_pass(name, int(rest[0]))
    elif what == "step":
        found = time_step(name)
    else:
        found = compare_memory(name, int(rest[0]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
