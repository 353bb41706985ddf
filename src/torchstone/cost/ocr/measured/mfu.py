"""How much of a device's peak each stage of a measured run used.

MFU is FLOPs / (seconds x dense peak). The FLOPs come from a static report where there is one, and
from the closed forms otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.arguments import choice, whole
from torchstone.cost.ocr.analysis.formulas import (
    estimate_decode_flops_per_token,
    estimate_prefill_flops_total,
    text_arguments,
)
from torchstone.cost.ocr.analysis.report import VISION
from torchstone.cost.ocr.model.shapes import TextShape
from torchstone.runtime.devices import device as device_of

STATIC = Text("static report", "静态报告")
MOVED = Text(
    "static report, moved to the measured length with the closed form",
    "静态报告，用解析公式换算到实测长度",
)
CLOSED = Text("closed form", "解析公式")
GIVEN = Text("given by the caller", "由调用者给出")
NONE = Text("nothing was counted", "没有计数")
MODES = ("auto", "fixed", "max")


@dataclass(frozen=True, slots=True)
class StageShare:
    """The division behind one stage's MFU."""

    flops: float
    seconds: float
    mfu: float
    source: Text
    """Where the FLOPs come from."""


@dataclass(frozen=True, slots=True)
class StageMFU:
    """MFU of each stage and of the whole; 0.41 is 41 %."""

    decode: float
    prefill: float
    vision: float
    model_level: float
    peak_flops: float
    """Dense FLOP/s that all are divided by."""
    peak_source: Text
    stages: Mapping[str, StageShare]
    """The divisions: vision, prefill, decode, and each vision stage that was timed by itself."""


def compute_stage_mfu(
    prefill_ms: float,
    decode_ms: float,
    vision_ms: float,
    prefill_len: int,
    new_tokens: int,
    d_model: int | None = None,
    d_ff: int | None = None,
    n_layers: int | None = None,
    peak_tflops: float | str | None = None,
    ctx_len_mode: str = "auto",
    ctx_len_fixed: int | None = None,
    model_window: int | None = None,
    vision_flops: float | None = None,
    *,
    static_report: Mapping[str, Any] | None = None,
    dtype: str = "bfloat16",
    stage_ms: Mapping[str, float] | None = None,
    stage_flops: Mapping[str, float] | None = None,
    given_source: Text = GIVEN,
    peak_source: Text | None = None,
    **more: Any,
) -> StageMFU:
    """MFU of vision, prefill and decode from measured milliseconds.

    `peak_tflops` is the dense peak in TFLOP/s, or the name of a device (`h100`) whose peak for
    `dtype` is looked up. With a `static_report` its FLOPs are taken and the model's dimensions
    need not be given; without one, `more` takes the keywords of `estimate_prefill_flops_total`.
    A decode step attends to all tokens before it: `ctx_len_mode` `auto` adds them up, `fixed`
    takes `ctx_len_fixed` for every step, `max` the `model_window`. `stage_ms` are milliseconds of
    single vision stages, `stage_flops` their FLOPs where there is no report, and `given_source`
    says where those (and `vision_flops`) come from.
    """
    peak, said = _peak(peak_tflops, dtype, peak_source)
    model = _Model.of(static_report, d_model, d_ff, n_layers, more)
    whole("prefill_len", prefill_len, least=0)
    whole("new_tokens", new_tokens, least=0)
    context = decode_context(ctx_len_mode, ctx_len_fixed, prefill_len, new_tokens, model_window)
    step, step_source = model.decode(context)
    flops = {
        "vision": model.vision(vision_flops, given_source),
        "prefill": model.prefill(prefill_len),
        "decode": (new_tokens * step, step_source),
    }
    times = {"vision": vision_ms, "prefill": prefill_ms, "decode": decode_ms}
    for stage, value in (stage_ms or {}).items():
        known = (stage_flops or {}).get(stage)
        flops[stage] = model.stage(stage) if known is None else (known, given_source)
        times[stage] = value
    shares = {name: _share(name, *flops[name], times[name], peak) for name in flops}
    three = [shares[name] for name in ("vision", "prefill", "decode")]
    seconds = sum(item.seconds for item in three)
    model_level = sum(item.flops for item in three) / (seconds * peak) if seconds else 0.0
    return StageMFU(
        shares["decode"].mfu,
        shares["prefill"].mfu,
        shares["vision"].mfu,
        model_level,
        peak,
        said,
        shares,
    )


def decode_context(
    mode: str, fixed: int | None, prefill_len: int, new_tokens: int, window: int | None
) -> float:
    """Tokens that the mean decode step attends to, itself among them.

    A step's cost grows linearly with its context, so that the mean stands for all steps exactly.
    """
    choice("ctx_len_mode", mode, MODES)
    if mode == "fixed":
        return float(whole("ctx_len_fixed", fixed))
    if mode == "max":
        return float(window or prefill_len + new_tokens)
    return prefill_len + (new_tokens + 1) / 2


@dataclass(frozen=True, slots=True)
class _Model:
    """Where FLOPs come from: a static report, closed forms, or both."""

    report: Mapping[str, Any] | None
    arguments: Mapping[str, Any] | None

    @classmethod
    def of(
        cls,
        report: Mapping[str, Any] | None,
        d_model: int | None,
        d_ff: int | None,
        n_layers: int | None,
        more: Mapping[str, Any],
    ) -> _Model:
        given = {"d_model": d_model, "d_ff": d_ff, "n_layers": n_layers}
        if all(value is not None for value in given.values()):
            return cls(report, {**given, **more})
        if report is None:
            lacking = ", ".join(name for name, value in given.items() if value is None)
            raise _wrong(
                lacking,
                None,
                Text("the model's dimensions, or a static_report", "模型的维度，或 static_report"),
            )
        text = (report.get("metadata") or {}).get("model", {}).get("text")
        return cls(report, text_arguments(TextShape(**text)) if text else None)

    def prefill(self, length: int) -> tuple[float, Text]:
        return self._moved("prefill", "seq_len", length, self._closed_prefill)

    def decode(self, context: float) -> tuple[float, Text]:
        return self._moved("decode", "ctx_len", context, self._closed_decode)

    def vision(self, given: float | None, source: Text) -> tuple[float, Text]:
        if given is not None:
            return given, source
        if self.report is None:
            return 0.0, NONE
        return sum(self.stage(name)[0] for name in VISION), STATIC

    def stage(self, name: str) -> tuple[float, Text]:
        if self.report is None:
            return 0.0, NONE
        stage = self.report["stages"].get(name)
        if name not in VISION or stage is None:
            raise _wrong("stage_ms", name, Text(f"one of {', '.join(VISION)}", "、".join(VISION)))
        return float(stage["flops"]), STATIC

    def _moved(
        self, stage: str, key: str, length: float, closed: Callable[[float], float]
    ) -> tuple[float, Text]:
        if self.report is None:
            return closed(length), CLOSED
        counted = float(self.report["stages"][stage]["flops"])
        at = self.report["metadata"][key]
        if at == length:
            return counted, STATIC
        return counted + closed(length) - closed(at), MOVED

    def _closed_prefill(self, length: float) -> float:
        return estimate_prefill_flops_total(seq_len=int(length), **self._known())

    def _closed_decode(self, context: float) -> float:
        one = estimate_decode_flops_per_token(ctx_len=1, **self._known())
        slope = estimate_decode_flops_per_token(ctx_len=2, **self._known()) - one
        return one + slope * (context - 1)

    def _known(self) -> Mapping[str, Any]:
        if self.arguments is None:
            raise _wrong(
                "static_report",
                "metadata without a model",
                Text("a report at the measured lengths", "与实测长度一致的报告"),
            )
        return self.arguments


def _share(name: str, flops: float, source: Text, ms: float, peak: float) -> StageShare:
    if not math.isfinite(ms) or ms < 0 or (ms == 0 and flops):
        raise _wrong(f"{name}_ms", ms, Text("a positive time", "正的时间"))
    seconds = ms / 1000
    return StageShare(flops, seconds, flops / (seconds * peak) if flops else 0.0, source)


def _peak(peak: float | str | None, dtype: str, source: Text | None) -> tuple[float, Text]:
    if isinstance(peak, str):
        known = device_of(peak)
        return known.peak_flops(dtype), source or Text(
            f"{known.title}, dense {dtype}", f"{known.title}，稠密 {dtype}"
        )
    if peak is None or not math.isfinite(peak) or peak <= 0:
        raise _wrong(
            "peak_tflops",
            peak,
            Text("dense TFLOP/s or the name of a device", "稠密 TFLOP/s 或设备名称"),
        )
    return peak * 1e12, source or GIVEN


def _wrong(name: str, value: object, expected: Text) -> UsageError:
    return UsageError(
        f"compute_stage_mfu: {name}",
        repr(value),
        expected,
        Text("pass another value", "请传入其他值"),
    )
