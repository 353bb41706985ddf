"""DeepSeek-OCR, stage by stage: what each costs, and how much of a device's peak it uses."""

from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.analysis.export import (
    write_static_compute_fvcore_table,
    write_static_compute_json,
    write_static_compute_markdown,
)
from torchstone.cost.ocr.analysis.formulas import (
    estimate_decode_flops_per_token,
    estimate_prefill_flops_total,
)
from torchstone.cost.ocr.config import AnalysisConfig, StageAnalysisResult
from torchstone.cost.ocr.measured.mfu import StageMFU, compute_stage_mfu
from torchstone.cost.ocr.model.session import DeepSeekOCRSession

__all__ = [
    "AnalysisConfig",
    "DeepSeekOCRSession",
    "DeepseekOCRStaticAnalyzer",
    "StageAnalysisResult",
    "StageMFU",
    "compute_stage_mfu",
    "estimate_decode_flops_per_token",
    "estimate_prefill_flops_total",
    "write_static_compute_fvcore_table",
    "write_static_compute_json",
    "write_static_compute_markdown",
]
