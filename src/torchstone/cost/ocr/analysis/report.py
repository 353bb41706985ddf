"""The static report: plain data under the names metadata, total, stages, notes."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torchstone._version import __version__
from torchstone.cost.ocr.analysis.folding import once
from torchstone.cost.ocr.analysis.notes import note
from torchstone.cost.ocr.config import StageAnalysisResult
from torchstone.cost.ocr.model.session import Session
from torchstone.cost.ocr.model.shapes import OcrShape
from torchstone.cost.ocr.page.case import Case

CONVENTION = "2 x MAC, matmul + attention (full) + convolution"
VISION = ("sam", "clip", "projector")


def build_report(
    case: Case,
    shape: OcrShape,
    session: Session,
    full: Mapping[str, Any],
    stages: Mapping[str, StageAnalysisResult],
    lang: str,
) -> dict[str, Any]:
    """The report; JSON can hold it as it is."""
    return {
        "metadata": _metadata(case, shape, session, lang),
        "total": _total(full, stages),
        "stages": {name: _stage(result) for name, result in stages.items()},
        "notes": _notes(case, session, full, lang),
    }


def installed(package: str) -> str:
    """The version of a package, or "not installed"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _metadata(case: Case, shape: OcrShape, session: Session, lang: str) -> dict[str, Any]:
    dtype = str(getattr(session, "m_dtype", "")).removeprefix("torch.")
    return {
        **asdict(case.config),
        "seq_len": case.prefill_length,
        "ctx_len": case.decode_length,
        "prompt_tokens": case.prompt_tokens,
        "image_tokens": case.image_tokens,
        "page": [case.plan.width, case.plan.height],
        "crops": list(case.plan.grid) if case.plan.crops else None,
        "model": shape.plain(),
        "model_path": getattr(session, "m_model_path", ""),
        "device": str(session.m_device),
        "dtype": dtype,
        "convention": CONVENTION,
        "lang": lang,
        "torchstone_version": __version__,
        "torch_version": installed("torch"),
        "transformers_version": installed("transformers"),
        "fvcore_version": installed("fvcore"),
    }


def _total(full: Mapping[str, Any], stages: Mapping[str, StageAnalysisResult]) -> dict[str, Any]:
    """From the whole pass; from the stages where that pass failed."""
    once_per_page = [stages[name] for name in (*VISION, "prefill")]
    partial = full["failure"] is not None
    flops = sum(item.flops for item in once_per_page) if partial else full["total_flops"]
    acts = sum(item.activations for item in once_per_page) if partial else full["total_activations"]
    return {
        "params": int(full["total_params"]),
        "flops": float(flops),
        "activations": float(acts),
        "vector_flops": None if partial else full["vector_flops"],
        "bytes": None if partial else full["bytes"],
        "peak_memory_bytes": None if partial else full["peak_memory_bytes"],
        "decode_flops_per_token": stages["decode"].flops,
    }


def _stage(result: StageAnalysisResult) -> dict[str, Any]:
    values = asdict(result)
    del values["stage_name"]
    return values


def _notes(case: Case, session: Session, full: Mapping[str, Any], lang: str) -> list[str]:
    cut = case.plan
    found = [
        note("convention"),
        note("tiers"),
        note("total", tokens=case.prompt_tokens),
        note(
            "view",
            width=cut.width,
            height=cut.height,
            view=cut.view,
            crops=cut.crops,
            crop=cut.crop,
            columns=cut.grid[0],
            rows=cut.grid[1],
            image=case.image_tokens,
            tokens=case.prompt_tokens,
        ),
    ]
    if not case.exact:
        found.append(note("assumed-text"))
    return once([*found, *getattr(session, "m_notes", ()), *full["notes"]], lang)
