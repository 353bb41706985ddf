"""A training script is run under torch's profiler for a few optimizer steps."""

from __future__ import annotations

import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import FrameType
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from torchstone.core.errors import TorchstoneError
from torchstone.dataflow.options import StepsOptions
from torchstone.dataflow.script import (
    Terminated,
    check_subject,
    output_to_stderr,
    run_subject,
    terminated_by_exception,
)
from torchstone.dataflow.steps.spans import Division, Span, divide
from torchstone.dataflow.tracing.instrument import is_user_file
from torchstone.dataflow.tracing.sampling import Spot, ThreadSampler
from torchstone.dataflow.tracing.tracer import without_our_frames
from torchstone.observe.training import TRAINING, StepEnds

_FIRST = 2
"""Optimizer steps before the first that counts: they make state, pick kernels and start workers."""
_ANCHOR = "torchstone: the same moment on both clocks"
_LOADER = "enumerate(DataLoader)#"
_WORKERS = "_MultiProcessingDataLoaderIter"
_STEP = "Optimizer.step#"
_WRAPPERS = ("autograd::", "torch::autograd")
"""Events around operators: a backward written in Python is inside of them."""


class _Enough(BaseException):
    """As many steps as were asked for; no `except Exception` of the program holds it up."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A few steps of a training script."""

    steps: int
    stretch: Span
    division: Division
    accelerator: str
    """The kind of the device; empty for the CPU."""
    spots: dict[str, Counter[Spot]]
    """By part, how often each line was seen."""
    operators: list[tuple[str, float]]
    """Microseconds by operator (kernel, on an accelerator), the longest first."""
    loader: str
    """`workers`, `own` (the process itself loads), or empty where there is no DataLoader."""


@dataclass(slots=True)
class Outcome:
    """How the run of a script ended."""

    seen: int = 0
    """Optimizer steps, those before the first that counts too."""
    failure: str = ""
    measured: Measured | None = None


@dataclass(slots=True)
class _Times:
    """When the thread was seen where, on the clock of this process."""

    moments: list[tuple[int, Spot]] = field(default_factory=list)
    anchor: int = 0


class _TimedSampler(ThreadSampler):
    """Keeps when each spot was seen, so that it can be laid beside the profiler's events."""

    def __init__(self, times: _Times) -> None:
        super().__init__(is_user_file)
        self._times = times

    def look(self, frame: FrameType | None) -> None:
        if frame is not None:
            self._times.moments.append((perf_counter_ns(), self.spot(frame)))


def measure_steps(options: StepsOptions) -> Outcome:
    """Run the script up to the last step that was asked for; its own exception ends it earlier."""
    check_subject("steps", options.script, options.call)
    outcome, times = Outcome(), _Times()
    accelerator = _accelerator()
    running = profile(activities=_activities(accelerator))
    sampler = _TimedSampler(times)
    begun = False

    def stepped(_: StepEnds) -> None:
        nonlocal begun
        outcome.seen += 1
        if outcome.seen == _FIRST:
            running.start()
            begun = True
            sampler.start()
            with record_function(_ANCHOR):
                times.anchor = perf_counter_ns()
        elif outcome.seen >= _FIRST + options.steps:
            raise _Enough

    hook = TRAINING.subscribe(stepped, StepEnds)
    try:
        outcome.failure = _run(options)
    finally:
        hook.close()
        sampler.stop()
        if begun:
            running.stop()
    if begun:
        outcome.measured = read_events(list(running.events() or ()), times, accelerator)
    return outcome


def _run(options: StepsOptions) -> str:
    """The name of the exception that ended the script early; empty where it ended well."""
    try:
        with output_to_stderr(), terminated_by_exception():
            run_subject(options.script, options.call, options.arguments)
    except _Enough:
        return ""
    except Terminated:
        return "SIGTERM"
    except KeyboardInterrupt:
        return "KeyboardInterrupt"
    except SystemExit as error:
        return "" if error.code in (None, 0) else f"SystemExit({error.code})"
    except TorchstoneError:
        raise
    except Exception as error:  # the user's own: shown as Python shows it
        traceback.print_exception(without_our_frames(error), file=sys.stderr)
        return type(error).__name__
    return ""


def _accelerator() -> str:
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found is not None and found.type in ("cuda", "xpu") else ""


def _activities(accelerator: str) -> list[ProfilerActivity]:
    more = {"cuda": [ProfilerActivity.CUDA], "xpu": [ProfilerActivity.XPU]}
    return [ProfilerActivity.CPU, *more.get(accelerator, [])]


def read_events(events: Sequence[Any], times: _Times, accelerator: str) -> Measured | None:
    """What the profiler saw, up to the end of the last step; None where no step ended."""
    steps = [_span(one) for one in events if one.name.startswith(_STEP) and _on_host(one)]
    anchors = [one.time_range.start for one in events if one.name == _ANCHOR]
    if not steps or not anchors:
        return None
    begin, end = anchors[0], max(span[1] for span in steps)
    loading = [one for one in events if one.name.startswith(_LOADER) and _on_host(one)]
    on_device = [one for one in events if not _on_host(one)]
    # a program that does not use the accelerator computes on the CPU
    computing = on_device or [one for one in events if _is_operator(one.name)]
    division = divide((begin, end), map(_span, loading), map(_span, computing), bool(on_device))
    spots: dict[str, Counter[Spot]] = {"data": Counter(), "device": Counter(), "host": Counter()}
    for moment, spot in times.moments:
        part = division.part_of(begin + (moment - times.anchor) / 1e3)
        if part:
            spots[part][spot] += 1
    kind = ("workers" if any(_WORKERS in one.name for one in loading) else "own") if loading else ""
    return Measured(
        len(steps), (begin, end), division, accelerator if on_device else "", spots,
        _by_name([one for one in computing if division.part_of(one.time_range.start) == "device"], lambda one: one.self_device_time_total if on_device else one.self_cpu_time_total),
        kind,
    )  # fmt: skip


def _by_name(events: Sequence[Any], spent: Callable[[Any], float]) -> list[tuple[str, float]]:
    found: defaultdict[str, float] = defaultdict(float)
    for one in events:
        found[one.name] += spent(one)
    return sorted(found.items(), key=lambda item: -item[1])


def _span(event: Any) -> Span:
    return float(event.time_range.start), float(event.time_range.end)


def _on_host(event: Any) -> bool:
    return bool(event.device_type.name == "CPU")


def _is_operator(name: str) -> bool:
    return "::" in name and not name.startswith(_WRAPPERS)
