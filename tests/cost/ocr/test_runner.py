"""One run folder: the static report first, then timed runs and MFU."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cost.ocr.conftest import SMALL_PAGE
from torchstone.core.errors import UsageError
from torchstone.cost.ocr.__main__ import main
from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.measured.runner import open_session, run
from torchstone.cost.ocr.measured.settings import RunSettings
from torchstone.cost.ocr.measured.timing import measured_peak, time_stages
from torchstone.cost.ocr.model.session import DeepSeekOCRSession

PAGE = AnalysisConfig(**SMALL_PAGE)
SIZES = ["--base-size", "256", "--image-size", "128", "--image-h", "200", "--image-w", "300"]


def settings(folder: Path, **more: Any) -> RunSettings:
    values = {"repeats": 2, "new_tokens": 3, "peak": "0.5", "analysis": PAGE, **more}
    return RunSettings(output=str(folder), **values)


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_the_static_report_is_there_before_the_clock_runs(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    ticks = iter(range(10_000))

    def clock() -> float:
        seen.append(sorted(item.name for item in tmp_path.iterdir()))
        return next(ticks) / 1000

    assert run(settings(tmp_path), clock=clock) == tmp_path
    assert seen[0] == ["static_compute.json", "static_compute.md"]
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "stage_mfu.json", "stage_mfu.md", "static_compute.json", "static_compute.md",
    ]  # fmt: skip


def test_mfu_is_the_static_flops_over_the_measured_time(tmp_path: Path) -> None:
    run(settings(tmp_path, repeats=3, warmups=2))
    report, mfu = load(tmp_path / "static_compute.json"), load(tmp_path / "stage_mfu.json")
    assert mfu["peak_tflops"] == 0.5
    for name in ("sam", "clip", "projector", "prefill"):
        stage = mfu["stages"][name]
        assert stage["flops"] == report["stages"][name]["flops"]
        assert stage["flops_from"] == "static report"
        assert len(stage["runs_ms"]) == 3
        assert min(stage["runs_ms"]) > 0
        seconds = sorted(stage["runs_ms"])[1] / 1000
        assert stage["mfu"] == pytest.approx(stage["flops"] / (seconds * 0.5e12))
    decode = mfu["stages"]["decode"]
    per_token = report["stages"]["decode"]["flops"]
    assert decode["flops"] == pytest.approx(3 * per_token, rel=0.01)
    text = (tmp_path / "stage_mfu.md").read_text("utf-8")
    assert [line.split("|")[1].strip() for line in text.splitlines() if line[:1] == "|"] == [
        "Stage", "---", "sam", "clip", "projector", "prefill", "decode", "whole",
    ]  # fmt: skip


def test_without_the_static_report_closed_forms_serve(tmp_path: Path) -> None:
    run(settings(tmp_path / "with"))
    run(settings(tmp_path / "without", enabled=False, lang="zh"))
    assert not (tmp_path / "without" / "static_compute.json").exists()
    one, two = (load(tmp_path / name / "stage_mfu.json") for name in ("with", "without"))
    for name, stage in one["stages"].items():
        assert stage["flops"] == pytest.approx(two["stages"][name]["flops"], rel=1e-12), name
    assert {stage["flops_from"] for stage in two["stages"].values()} == {"解析公式"}


def test_the_static_report_alone_needs_no_device(tmp_path: Path) -> None:
    run(settings(tmp_path, repeats=0, device="cuda:0"))
    assert load(tmp_path / "static_compute.json")["metadata"]["device"] == "meta"
    assert not (tmp_path / "stage_mfu.json").exists()


def test_the_peak_is_measured_when_none_is_given(tmp_path: Path) -> None:
    run(settings(tmp_path, peak=None, repeats=1))
    mfu = load(tmp_path / "stage_mfu.json")
    assert "measured here" in mfu["peak_source"]
    assert mfu["peak_tflops"] > 1e-4


def test_peak_of_a_fixed_clock() -> None:
    ticks = iter(range(100))
    cpu = torch.device("cpu")
    assert measured_peak(cpu, torch.float32, lambda: float(next(ticks))) == 2 * 1024**3


def test_a_new_folder_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    when = datetime(2026, 2, 3, 4, 5, 6)
    folder = run(RunSettings(repeats=0, analysis=PAGE), now=when)
    assert folder.as_posix() == "runs/ocr-20260203-040506"
    assert (tmp_path / folder / "static_compute.md").exists()


def test_times_of_a_counted_clock(small: DeepSeekOCRSession) -> None:
    ids, kwargs = DeepseekOCRStaticAnalyzer(small).prepare_inputs(PAGE)
    ticks = iter(range(10_000))
    timings = time_stages(
        small, ids, kwargs, repeats=2, warmups=1, new_tokens=2, clock=lambda: float(next(ticks))
    )
    # two views: each vision module runs twice, and the clock ticks once inside each call
    assert timings.seconds["sam"] == timings.seconds["clip"] == (2.0, 2.0)
    # start, six pairs inside, end: thirteen ticks, six of them vision's
    assert timings.seconds["prefill"] == (7.0, 7.0)
    assert timings.seconds["decode"] == (1.0, 1.0)
    assert timings.prompt_tokens == ids.shape[1]
    assert not any(module._forward_hooks for module in small.m_model.modules())


def test_nothing_can_be_timed_on_meta(published: DeepseekOCRStaticAnalyzer) -> None:
    with pytest.raises(UsageError, match="a session on the meta device"):
        time_stages(published.m_session, torch.zeros(1, 1), {})  # type: ignore[arg-type]


def test_a_folder_without_weights(tmp_path: Path, folder: Path) -> None:
    bare = settings(tmp_path / "bare", model=str(folder))
    with pytest.raises(UsageError, match="--random-weights"):
        run(bare)
    assert (tmp_path / "bare" / "static_compute.json").exists()  # what was done stays
    run(settings(tmp_path / "filled", model=str(folder), random_weights=True))
    mfu = load(tmp_path / "filled" / "stage_mfu.json")
    assert mfu["device"] == "cpu"
    assert any("random" in item for item in mfu["notes"])


def test_a_folder_names_its_own_format(folder: Path) -> None:
    with pytest.raises(UsageError, match="leave --dtype out"):
        open_session(RunSettings(model=str(folder), dtype="float32"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--output", str(tmp_path / "run"), "--repeats", "1", "--peak", "1", *SIZES]
    assert main(flags) == 0
    assert capsys.readouterr().out == f"written to {tmp_path / 'run'}\n"
    assert main(["--image-h", "0"]) == 2
    assert "AnalysisConfig.image_h: got 0" in capsys.readouterr().err
    assert main(["--lang", "zh", "--model", str(tmp_path / "none")]) == 2
    assert "应为" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_as_a_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchstone.cost.ocr", "--output", "run", "--repeats", "0", *SIZES],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "written to run\n"), done.stderr
    assert load(tmp_path / "run" / "static_compute.json")["total"]["params"] > 0
