"""What a model costs: parameters, FLOPs, bytes, activations, memory and time, before it runs.

The names below are loaded when they are first used: counting needs no transformers, and the
analyzer of one model does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchstone.cost.decoders.closed_forms import Decoder
    from torchstone.cost.measure import measure_cost
    from torchstone.cost.ocr import (
        AnalysisConfig,
        DeepSeekOCRSession,
        DeepseekOCRStaticAnalyzer,
        StageAnalysisResult,
        compute_stage_mfu,
        estimate_decode_flops_per_token,
        estimate_prefill_flops_total,
        write_static_compute_fvcore_table,
        write_static_compute_json,
        write_static_compute_markdown,
    )
    from torchstone.cost.on_devices.fitting import fit
    from torchstone.cost.on_devices.plan import Plan
    from torchstone.cost.on_devices.roofline_time import roofline
    from torchstone.cost.on_devices.utilization import mfu
    from torchstone.cost.real_step import count_step
    from torchstone.cost.reporting.report import CostReport

__all__ = [
    "AnalysisConfig",
    "CostReport",
    "Decoder",
    "DeepSeekOCRSession",
    "DeepseekOCRStaticAnalyzer",
    "Plan",
    "StageAnalysisResult",
    "compute_stage_mfu",
    "count_step",
    "estimate_decode_flops_per_token",
    "estimate_prefill_flops_total",
    "fit",
    "measure_cost",
    "mfu",
    "roofline",
    "write_static_compute_fvcore_table",
    "write_static_compute_json",
    "write_static_compute_markdown",
]

_HOMES = {
    "CostReport": "reporting.report",
    "Decoder": "decoders.closed_forms",
    "Plan": "on_devices.plan",
    "count_step": "real_step",
    "fit": "on_devices.fitting",
    "measure_cost": "measure",
    "mfu": "on_devices.utilization",
    "roofline": "on_devices.roofline_time",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'torchstone.cost' has no attribute {name!r}")
    import importlib

    home = importlib.import_module(f"torchstone.cost.{_HOMES.get(name, 'ocr')}")
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)
