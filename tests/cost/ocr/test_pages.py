"""The guide and the example say what the code does."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from torchstone.core.options import options_of
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.measured.settings import RunSettings, settings_from_flags

ROOT = Path(__file__).parents[3]
GUIDES = [ROOT / "docs" / "static_analysis.md", ROOT / "docs" / "zh" / "static_analysis.md"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_every_key_is_in_the_guide(guide: Path) -> None:
    text = guide.read_text("utf-8")
    keys = {item.name for cls in (AnalysisConfig, RunSettings) for item in options_of(cls)}
    for key in keys - {"analysis", "enabled"}:
        assert f"`{key}`" in text, key
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (guide.parent / target).exists(), target


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_commands_of_the_guide_are_understood(
    guide: Path, monkeypatch: Any, tmp_path: Path
) -> None:
    pytest.importorskip("hydra")
    own = tmp_path / "my_conf" / "static_analysis"
    own.mkdir(parents=True)
    (own / "scans.yaml").write_text("defaults: [default]\nimage_h: 3508\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^python -m torchstone\.cost\.ocr (.+)$", guide.read_text("utf-8"), re.M)
    assert len(lines) == 3
    for line in lines:
        settings_from_flags(line.split())


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_figures_of_the_guide(guide: Path, letter_report: dict[str, Any]) -> None:
    text = guide.read_text("utf-8")
    for stage, data in letter_report["stages"].items():
        line = next(row for row in text.splitlines() if row.startswith(f"| {stage} | "))
        assert f"{data['params']:,}" in line
        mantissa, power = f"{data['flops']:.6e}".split("e+")
        assert f"{mantissa}e{int(power)}" in line
    assert f"{letter_report['total']['params']:,}" in text
    assert "4.568379e12" in text
    assert letter_report["total"]["flops"] == pytest.approx(4.568379e12, rel=1e-6)


def test_the_example_writes_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location(
        "static_analysis", ROOT / "examples" / "static_analysis.py"
    )
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["static_analysis.py", "out"])
    example.main()
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["static_compute.json", "static_compute.md", "static_compute_modules.md"]
    report = json.loads((tmp_path / "out" / "static_compute.json").read_text("utf-8"))
    assert report["total"]["params"] == 3_336_106_240
    said = capsys.readouterr().out
    assert "Total params: 3336.11M" in said
    assert "MFU: vision" in said
    monkeypatch.setattr(sys, "argv", ["static_analysis.py"])
    example.main()
    made = [path for path in tmp_path.iterdir() if path.name.startswith("static_analysis-")]
    assert len(made) == 1
    assert (made[0] / "static_compute.json").exists()
