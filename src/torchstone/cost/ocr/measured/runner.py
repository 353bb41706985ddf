"""One run folder: the static report first, then repeated timed runs and the MFU of each stage."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from torchstone.core.errors import UsageError
from torchstone.core.files import write_atomically
from torchstone.core.text import Text
from torchstone.cost.arguments import positive
from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.analysis.export import (
    write_static_compute_json,
    write_static_compute_markdown,
)
from torchstone.cost.ocr.analysis.formulas import text_arguments
from torchstone.cost.ocr.analysis.report import VISION
from torchstone.cost.ocr.analysis.stages import STAGES, Work, analytic_flops
from torchstone.cost.ocr.measured.mfu import CLOSED, StageMFU, compute_stage_mfu
from torchstone.cost.ocr.measured.settings import RunSettings
from torchstone.cost.ocr.measured.timing import Clock, Timings, measured_peak, time_stages
from torchstone.cost.ocr.model.session import DeepSeekOCRSession
from torchstone.cost.ocr.model.shapes import PUBLISHED
from torchstone.cost.ocr.page.case import make_case
from torchstone.runtime.devices import device

_MEASURED = Text(
    "measured here: best of ten {dtype} matrix products on {device}; not a data-sheet figure",
    "本机实测：{device} 上十次 {dtype} 矩阵乘的最快一次；并非数据手册数值",
)
_HEADS = Text(
    "| Stage | Median (ms) | Min – max (ms) | GFLOP | MFU | FLOPs from |",
    "| 阶段 | 中位数（毫秒） | 最小 – 最大（毫秒） | GFLOP | MFU | FLOPs 来源 |",
)
_PREFILL = Text(
    "prefill is the pass over the page without its vision modules; decode is all {tokens} new "
    "tokens of a run; {runs} timed runs after {warmups} that do not count",
    "prefill 为整页前向中除视觉模块外的部分；decode 为一次运行的全部 {tokens} 个新 token；"
    "{warmups} 次预热之后计时 {runs} 次",
)
_PEAK = Text("peak: {peak:.6g} TFLOP/s ({source})", "峰值：{peak:.6g} TFLOP/s（{source}）")
_WHOLE = Text("whole", "整体")


def run(
    settings: RunSettings, clock: Clock = time.perf_counter, now: datetime | None = None
) -> Path:
    """Write static_compute.json and .md, then stage_mfu.json and .md; the folder they are in."""
    _peak(settings.peak)  # a name that nobody knows must not cost an analysis
    folder = Path(settings.output or Path("runs") / f"ocr-{now or datetime.now():%Y%m%d-%H%M%S}")
    session = open_session(settings)
    report = None
    analyzer = DeepseekOCRStaticAnalyzer(session, lang=settings.lang)
    if settings.enabled:
        report = analyzer.generate_report(settings.analysis)
        write_static_compute_json(report, folder / "static_compute.json")
        write_static_compute_markdown(report, folder / "static_compute.md")
    if settings.repeats:
        input_ids, model_kwargs = analyzer.prepare_inputs(settings.analysis)
        timings = time_stages(
            session,
            input_ids,
            model_kwargs,
            repeats=settings.repeats,
            warmups=settings.warmups,
            new_tokens=settings.new_tokens,
            clock=clock,
        )
        shares = stage_mfu(session, settings, timings, report, clock)
        plain = _plain(settings, session, timings, shares)
        write_atomically(
            folder / "stage_mfu.json", json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
        )
        write_atomically(folder / "stage_mfu.md", _markdown(settings, timings, shares))
    return folder


def open_session(settings: RunSettings) -> DeepSeekOCRSession:
    """The model that the settings name; without timed runs it stays on the meta device."""
    place = settings.device if settings.repeats else "meta"
    if settings.model not in PUBLISHED:
        if settings.dtype is not None:
            raise UsageError(
                "dtype",
                settings.dtype,
                Text(
                    "nothing: a folder's config.json names it", "留空：由文件夹的 config.json 指定"
                ),
                Text("leave --dtype out", "请去掉 --dtype"),
            )
        return DeepSeekOCRSession.from_local(
            settings.model, place, random_weights=settings.random_weights
        )
    usual = "float32" if settings.device == "cpu" else "bfloat16"
    dtype: torch.dtype = getattr(torch, settings.dtype or usual)
    return DeepSeekOCRSession.from_config(settings.model, place, dtype=dtype)


def stage_mfu(
    session: DeepSeekOCRSession,
    settings: RunSettings,
    timings: Timings,
    report: Mapping[str, Any] | None,
    clock: Clock = time.perf_counter,
) -> StageMFU:
    """MFU of each stage from its median time; FLOPs from the static report where there is one."""
    dtype = str(session.m_dtype).removeprefix("torch.")
    peak, source = _peak(settings.peak), None
    if peak is None:
        peak = measured_peak(session.m_device, session.m_dtype, clock) / 1e12
        said = {"dtype": dtype, "device": _device_name(session.m_device)}
        source = Text(_MEASURED.en.format(**said), _MEASURED.zh.format(**said))
    vision = {stage: timings.median_ms(stage) for stage in VISION}
    case = make_case(settings.analysis, session.m_shape, session.m_tokenizer)
    work = Work(case.plan, case.prompt_tokens, session.m_dtype)
    closed = {stage: analytic_flops(stage, session.m_shape, work) for stage in VISION}
    return compute_stage_mfu(
        timings.median_ms("prefill"),
        timings.median_ms("decode"),
        sum(vision.values()),
        timings.prompt_tokens,
        timings.new_tokens,
        peak_tflops=peak,
        vision_flops=None if report else sum(closed.values()),
        static_report=report,
        dtype=dtype,
        stage_ms=vision,
        stage_flops=None if report else closed,
        given_source=CLOSED,
        peak_source=source,
        **({} if report else text_arguments(session.m_shape.text)),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _peak(given: str | float | None) -> str | float | None:
    """A number of TFLOP/s or the name of a known device; None to measure it here."""
    if given is None:
        return None
    try:
        number = float(given)
    except ValueError:
        device(str(given))
        return given
    return positive("peak", number)


def _device_name(device: torch.device) -> str:
    return platform.machine() if device.type == "cpu" else str(device)


def _plain(
    settings: RunSettings, session: DeepSeekOCRSession, timings: Timings, shares: StageMFU
) -> dict[str, Any]:
    """What was measured and divided, as JSON holds it."""
    lang = settings.lang
    return {
        "settings": asdict(settings),
        "device": str(session.m_device),
        "dtype": str(session.m_dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "prompt_tokens": timings.prompt_tokens,
        "new_tokens": timings.new_tokens,
        "peak_tflops": shares.peak_flops / 1e12,
        "peak_source": shares.peak_source.get(lang),
        "mfu": {
            "vision": shares.vision,
            "prefill": shares.prefill,
            "decode": shares.decode,
            "model_level": shares.model_level,
        },
        "stages": {
            name: {
                "flops": share.flops,
                "median_ms": 1000 * share.seconds,
                "mfu": share.mfu,
                "flops_from": share.source.get(lang),
                "runs_ms": [1000 * value for value in timings.seconds.get(name, ())],
            }
            for name, share in shares.stages.items()
        },
        "notes": [item.say(lang) for item in session.m_notes],
    }


def _markdown(settings: RunSettings, timings: Timings, shares: StageMFU) -> str:
    lang = settings.lang
    lines = ["# MFU", "", _HEADS.get(lang), "|---|---:|---:|---:|---:|---|"]
    for stage in STAGES:
        share = shares.stages[stage]
        low, high = timings.spread_ms(stage)
        cells = [stage, f"{1000 * share.seconds:.3f}", f"{low:.3f} – {high:.3f}"]
        cells += [f"{share.flops / 1e9:.6g}", _percent(share.mfu), share.source.get(lang)]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"| {_WHOLE.get(lang)} |  |  |  | {_percent(shares.model_level)} |  |")
    said = {"tokens": timings.new_tokens, "runs": settings.repeats, "warmups": settings.warmups}
    peak = {"peak": shares.peak_flops / 1e12, "source": shares.peak_source.get(lang)}
    lines += ["", f"- {_PREFILL.get(lang).format(**said)}", f"- {_PEAK.get(lang).format(**peak)}"]
    return "\n".join(lines) + "\n"
