"""The files that a report is written to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchstone.core.errors import InputError
from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.analysis.export import (
    fvcore_table,
    tier_of,
    write_static_compute_fvcore_table,
    write_static_compute_json,
    write_static_compute_markdown,
)
from torchstone.cost.ocr.analysis.table import size_text
from torchstone.cost.ocr.config import AnalysisConfig


def test_json_holds_the_report(letter_report: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "new" / "static_compute.json"
    write_static_compute_json(letter_report, path)
    text = path.read_text("utf-8")
    assert json.loads(text) == letter_report
    assert text.startswith('{\n  "metadata"')


def test_markdown_has_the_sections(letter_report: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "static_compute.md"
    write_static_compute_markdown(letter_report, path)
    text = path.read_text("utf-8")
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "## Configuration",
        "## Total Model",
        "## Per-Stage Breakdown",
        "## Notes",
        "## Per-Stage Details",
    ]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| Stage | Params (M) | FLOPs (G) | Activations (M) | Source |"
    assert rows[2] == "| sam | 95.569 | 2,930.634 | 1,440.962 | isolated |"
    assert len(rows) == 7
    for name in ("sam", "clip", "projector", "prefill", "decode"):
        assert f"### {name}" in text
    assert text.count("**Extracted FLOPs**") == text.count("**Isolated FLOPs**") == 5
    assert text.count("**Analytical FLOPs**") == 5
    prefill = text[text.index("### prefill") : text.index("### decode")]
    assert [line[:2] for line in prefill.splitlines() if line[:1].isdigit()] == ["1.", "2.", "3."]
    assert "`aten._grouped_mm`" in prefill


def test_markdown_follows_the_language(
    published: DeepseekOCRStaticAnalyzer, tmp_path: Path
) -> None:
    analyzer = DeepseekOCRStaticAnalyzer(published.m_session, lang="zh")
    report = analyzer.generate_report(AnalysisConfig(image_w=600, image_h=600))
    write_static_compute_markdown(report, tmp_path / "a.md")
    assert "## 各阶段明细" in (tmp_path / "a.md").read_text("utf-8")


def test_which_figure_a_stage_shows() -> None:
    stage = {"flops_isolated": None, "flops_extracted": None, "flops_analytic": None}
    assert tier_of(stage) == "-"
    assert tier_of({**stage, "flops_analytic": 1.0}) == "analytical"
    assert tier_of({**stage, "flops_analytic": 1.0, "flops_extracted": 0.0}) == "extracted"
    assert tier_of({**stage, "flops_isolated": 0.0, "flops_extracted": 1.0}) == "isolated"


def test_a_place_that_cannot_be_written(letter_report: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(InputError, match="can be written"):
        write_static_compute_json(letter_report, tmp_path / "file" / "static_compute.json")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, ""), (16, "16"), (928, "0.928K"), (15_400, "15.4K"), (226_000, "0.226M"),
     (34.6e6, "34.6M"), (65.7e9, "65.7G"), (3.53e12, "3.53T")],
)  # fmt: skip
def test_sizes_have_three_figures(value: float, text: str) -> None:
    assert size_text(value) == text


def test_own_table_of_modules(published: DeepseekOCRStaticAnalyzer, tmp_path: Path) -> None:
    full = published.analyze_full_model(AnalysisConfig(image_w=600, image_h=600))
    write_static_compute_fvcore_table(full, tmp_path / "table.md", max_depth=2)
    lines = (tmp_path / "table.md").read_text("utf-8").splitlines()
    assert "2 x MAC" in lines[0]
    assert lines[2] == "```"
    rows = [line for line in lines if line.startswith("| ")]
    assert [cell.strip() for cell in rows[0].strip("|").split("|")] == [
        "module", "#parameters", "#flops", "#activations",
    ]  # fmt: skip
    names = [row.split("|")[1] for row in rows[1:]]
    assert [name.strip() for name in names] == [
        "model", "model", "model.sam_model", "model.vision_model", "model.embed_tokens",
        "model.layers", "model.norm", "model.projector", "lm_head",
    ]  # fmt: skip
    assert names[2].startswith("   model.sam_model")
    assert len({len(line) for line in lines if line.startswith("|")}) == 1


def test_own_table_of_a_report(letter_report: dict[str, Any]) -> None:
    text = fvcore_table(letter_report, 3, "zh")
    assert "fvcore 自身输出的是 1 x MAC" in text
    assert "|  sam" in text


class Traced:
    """Stands for fvcore's analysis object where fvcore is not installed."""

    def __init__(self) -> None:
        self._model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
        self._inputs = (torch.zeros(3, 4),)


def test_without_a_working_fvcore_the_engine_counts() -> None:
    text = fvcore_table(Traced(), 3, "en")
    assert text.startswith("fvcore could not make its table (")
    first = next(line for line in text.splitlines() if line.startswith("|  0 "))
    assert "0.192K" in first  # 2 x 3 x 4 x 8


def test_a_working_fvcore_makes_its_own_table() -> None:
    fvcore = pytest.importorskip("fvcore.nn")
    analysis = fvcore.FlopCountAnalysis(Traced()._model, Traced()._inputs)
    text = fvcore_table(analysis, 3, "en")
    assert text.startswith("Made by fvcore: its #flops are multiply-adds (1 x MAC)")
    assert "#parameters or shape" in text
