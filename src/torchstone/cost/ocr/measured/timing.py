"""Wall-clock time of each stage over repeated real runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.ocr.analysis.report import VISION
from torchstone.cost.ocr.analysis.stages import STAGE_MODULES, STAGES, module_at
from torchstone.cost.ocr.model.session import DeepSeekOCRSession

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of each stage in each timed run."""

    seconds: Mapping[str, tuple[float, ...]]
    """By stage; `decode` is all new tokens of a run, `prefill` the pass without its vision part."""
    prompt_tokens: int
    new_tokens: int

    def median_ms(self, stage: str) -> float:
        return 1000 * statistics.median(self.seconds[stage])

    def spread_ms(self, stage: str) -> tuple[float, float]:
        values = self.seconds[stage]
        return 1000 * min(values), 1000 * max(values)


def time_stages(
    session: DeepSeekOCRSession,
    input_ids: Tensor,
    model_kwargs: Mapping[str, Any],
    *,
    repeats: int = 5,
    warmups: int = 1,
    new_tokens: int = 8,
    clock: Clock = time.perf_counter,
) -> Timings:
    """Run the page and generate tokens, again and again, and time what each stage takes."""
    if session.m_device.type == "meta":
        raise UsageError(
            "time_stages",
            "a session on the meta device",
            Text("a model with weights on a real device", "位于真实设备、带权重的模型"),
            Text(
                "use a folder with weights, or random weights (--random-weights); --repeats 0 "
                "times nothing",
                "请使用带权重的文件夹或随机权重（--random-weights）；--repeats 0 则不计时",
            ),
        )
    watch = _Watch(clock, session.m_device)
    found: dict[str, list[float]] = {stage: [] for stage in STAGES}
    with watch.over(session.m_model), torch.inference_mode():
        for turn in range(warmups + repeats):
            seconds = _once(session.m_model, input_ids, model_kwargs, new_tokens, watch)
            if turn >= warmups:
                for stage, value in seconds.items():
                    found[stage].append(value)
    kept = {stage: tuple(values) for stage, values in found.items()}
    return Timings(kept, int(input_ids.shape[1]), new_tokens)


def measured_peak(
    device: torch.device, dtype: torch.dtype, clock: Clock = time.perf_counter
) -> float:
    """FLOP/s of the best of ten large matrix products on this device: what it really reaches."""
    side = 1024 if device.type == "cpu" else 8192
    left = torch.ones((side, side), device=device, dtype=dtype)
    best = float("inf")
    watch = _Watch(clock, device)
    for _ in range(10):
        start = watch.now()
        left @ left
        best = min(best, watch.now() - start)
    return 2 * side**3 / best


def _once(
    model: nn.Module,
    input_ids: Tensor,
    model_kwargs: Mapping[str, Any],
    new_tokens: int,
    watch: _Watch,
) -> dict[str, float]:
    watch.seconds = dict.fromkeys(VISION, 0.0)
    start = watch.now()
    output = model(input_ids, **model_kwargs)
    middle = watch.now()
    vision = dict(watch.seconds)
    for _ in range(new_tokens):
        token = output.logits[:, -1:].argmax(-1)
        output = model(token, past_key_values=output.past_key_values)
    end = watch.now()
    prefill = middle - start - sum(vision.values())
    return {**vision, "prefill": prefill, "decode": end - middle}


class _Watch:
    """A clock that waits for the device, and adds up the time inside the vision modules."""

    def __init__(self, clock: Clock, device: torch.device) -> None:
        self.clock = clock
        self.device = device
        self.seconds: dict[str, float] = {}

    def now(self) -> float:
        if self.device.type == "mps":
            torch.mps.synchronize()  # the only one, which takes no device
        elif self.device.type != "cpu":
            getattr(torch, self.device.type).synchronize(self.device)
        return self.clock()

    @contextmanager
    def over(self, model: nn.Module) -> Iterator[None]:
        """Hooks on the vision modules, gone afterwards."""
        handles = []
        try:
            for stage in VISION:
                module = module_at(model, STAGE_MODULES[stage][0])
                if module is not None:
                    handles += self._hooks(stage, module)
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hooks(self, stage: str, module: nn.Module) -> list[Any]:
        started: list[float] = []

        def before(*_: Any) -> None:
            started.append(self.now())

        def after(*_: Any) -> None:
            self.seconds[stage] += self.now() - started.pop()

        return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
