"""The command line: trace, plan, and everything that can be wrong with them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from torchstone.cli.main import run
from torchstone.core.report import Report

SCRIPT = """
import sys
import cv2
import numpy as np

def prepare(image):
    small = cv2.resize(image, (16, 16))
    return small / 255.0

if __name__ == "__main__":
    images = [np.full((32, 32, 3), n, np.uint8) for n in range(int(sys.argv[1]))]
    batch = np.stack([prepare(image) for image in images])
    print("shape", batch.shape)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "prepare.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_trace_then_plan(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["flow", "trace", "prepare.py", "--svg", "g.svg", "--chrome", "c.json", "--", "3"])
    out, err = capfd.readouterr()
    assert code == 0
    assert "shape (3, 16, 16, 3)" in err
    assert out.startswith("prepare.py takes ")
    assert "numpy.stack" in out
    assert (project / ".torchstone" / ".gitignore").read_text() == "*\n"
    assert "<svg" in (project / "g.svg").read_text("utf-8")
    assert json.loads((project / "c.json").read_text())["traceEvents"]
    data = json.loads((project / ".torchstone/flow/trace.json").read_text())
    names = [node["name"] for node in data["nodes"] if node["type"] == "function_call"]
    assert names.count("cv2.resize") == 3

    profile = {"name": "cuda:0", "speedup": 50.0, "latency_seconds": 0.0, "launch_seconds": 0.0}
    (project / "fast.json").write_text(json.dumps(profile))
    assert run(["flow", "plan", "--profile", "fast.json", "--format", "json"]) == 0
    report = Report.from_json(capfd.readouterr().out)
    assert {
        "plan_seconds",
        "all_cpu_seconds",
        "all_device_seconds",
        "bound_seconds",
        "parts_seconds",
    } == {measure.name for measure in report.measures}
    plan = json.loads((project / ".torchstone/flow/plan.json").read_text())
    assert plan["program"] == "prepare.py"
    assert plan["program_hash"]


def test_a_function(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "job.py").write_text(
        "import numpy as np\ndef go(n='2'):\n    return np.ones(int(n)) * 2\n"
    )
    assert run(["flow", "trace", "--call", "job:go", "--save", "", "--", "5"]) == 0
    assert "numpy.multiply" in capfd.readouterr().out
    assert not (project / ".torchstone").exists()


def test_pages_in_both_languages(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["flow", "trace", "prepare.py", "-o", "flow.html", "--", "2"]) == 0
    assert 'data-kind="data_graph"' in (project / "flow.html").read_text("utf-8")
    capfd.readouterr()
    assert run(["flow", "trace", "prepare.py", "--lang", "zh", "--", "2"]) == 0
    assert "代码块用时" in capfd.readouterr().out


def test_a_script_that_raises(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "bad.py").write_text("import numpy as np\nx = np.ones(3) * 2\nx.reshape(2, 2)\n")
    assert run(["flow", "trace", "bad.py"]) == 3
    out, err = capfd.readouterr()
    assert "cannot reshape" in err
    assert "hooks.py" not in err
    assert "raised ValueError" in out
    assert "numpy.multiply" in (project / ".torchstone/flow/trace.json").read_text()


def test_a_script_that_exits(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "leaves.py").write_text(
        "import numpy as np\nx = np.ones(3) * 2\nraise SystemExit(0)\n"
    )
    assert run(["flow", "trace", "leaves.py"]) == 0
    (project / "leaves.py").write_text("raise SystemExit(4)\n")
    assert run(["flow", "trace", "leaves.py"]) == 3
    assert "no operator" in capfd.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["flow"],
        ["flow", "fold"],
        ["flow", "trace"],
        ["flow", "trace", "missing.py"],
        ["flow", "trace", "."],
        ["flow", "trace", "prepare.py", "--call", "a:b"],
        ["flow", "trace", "--call", "prepare"],
        ["flow", "trace", "--call", "no_such_module:f"],
        ["flow", "trace", "--call", "prepare:nothing"],
        ["flow", "trace", "--call", "prepare:cv2"],
        ["flow", "trace", "prepare.py", "--max-depth", "0"],
        ["flow", "plan", "missing.json"],
        ["flow", "plan", "prepare.py"],
        ["flow", "run", "prepare.py", "--plan", "missing.json"],
        ["flow", "run", "missing.py"],
        ["flow", "export", "--call", "prepare:prepare"],
        ["flow", "export", "--ray", "--call", "prepare"],
        ["flow", "export", "plan.json", "--ray", "--call", "prepare:f();x"],
        ["flow", "export", "missing.json", "--ray", "--call", "prepare:prepare"],
    ],
)
def test_wrong_input(words: list[str], project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = sorted(project.rglob("*"))
    assert run(words) == 2
    out, err = capfd.readouterr()
    assert not out
    assert err.startswith("torchstone: ")
    assert "Traceback" not in err
    after = [path for path in project.rglob("*") if "__pycache__" not in path.parts]
    assert sorted(after) == before


def test_a_plan_for_another_version_of_the_program(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = {"context_device_map": {}, "program": "prepare.py", "program_hash": "0123456789abcdef"}
    (project / "plan.json").write_text(json.dumps(plan))
    assert run(["flow", "run", "prepare.py", "--plan", "plan.json", "--", "2"]) == 2
    assert "trace and plan it again" in capfd.readouterr().err


def test_a_script_for_ray(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "plan.json").write_text(json.dumps({"context_device_map": {"cv2.resize": "cpu"}}))
    words = ["flow", "export", "plan.json", "--ray", "--call", "prepare:prepare"]
    assert run([*words, "--save", "pipeline.py"]) == 0
    assert "Ray Data pipeline, 1 operators on a device" in capfd.readouterr().out
    text = (project / "pipeline.py").read_text()
    compile(text, "pipeline.py", "exec")
    assert "from prepare import prepare" in text
    assert "cv2.resize" in text


def test_the_same_results_with_a_plan(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torchstone.dataflow.migration")
    (project / "plan.json").write_text(
        json.dumps({"context_device_map": {"prepare/cv2.resize": "cpu"}})
    )
    words = ["flow", "run", "prepare.py", "--plan", "plan.json", "--format", "json", "--", "3"]
    assert run(words) == 0
    report = Report.from_json(capfd.readouterr().out)
    assert report.answer is not None
    assert "4 results equal bit by bit" in report.answer.headline.en
    assert not report.findings


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device of the plan is here")
def test_a_run_without_the_device_of_the_plan_says_nothing_of_its_speed(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = {"context_device_map": {"prepare/cv2.resize": "cuda:0"}}
    (project / "plan.json").write_text(json.dumps(plan))
    words = ["flow", "run", "prepare.py", "--plan", "plan.json", "--lang", "zh", "--", "3"]
    assert run(words) == 0
    out = capfd.readouterr().out
    assert out.startswith("✓")
    assert "速度未知" in out.splitlines()[0]
    assert "本机没有 cuda:0" in out
    assert "不划算" not in out


def test_a_plan_says_on_what_its_times_rest(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without -v, too: a gain on a device that is assumed is not a gain that was measured."""
    assert run(["flow", "trace", "prepare.py", "--", "3"]) == 0
    capfd.readouterr()
    assert run(["flow", "plan", "--device", "cuda:99"]) == 0
    assert "no cuda:99 here; estimated for NVIDIA A100 SXM4 80 GB" in capfd.readouterr().out


def test_a_profile_that_was_measured_in_a_run_makes_the_next_plan(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """On this machine the device is `cpu`: torch's kernels are slower than OpenCV's, nothing moves."""
    assert run(["flow", "trace", "prepare.py", "--save", "trace.json", "--", "3"]) == 0
    plan = {"context_device_map": {"prepare/cv2.resize": "cuda:0"}}
    (project / "plan.json").write_text(json.dumps(plan))
    words = ["flow", "run", "prepare.py", "--plan", "plan.json", "--save-profile", "profile.json"]
    assert run([*words, "--", "3"]) == 0
    measured = json.loads((project / "profile.json").read_text())
    assert measured["name"] == "cpu"
    assert measured["speedups"]["cv2.resize"] > 0
    measured["speedups"] = {"cv2.resize": 0.1}  # whatever the machine was doing
    (project / "profile.json").write_text(json.dumps(measured))
    capfd.readouterr()
    words = ["flow", "plan", "trace.json", "--profile", "profile.json", "--save", "next.json"]
    assert run([*words, "--format", "json"]) == 0
    report = Report.from_json(capfd.readouterr().out)
    assert report.answer is not None
    assert any(
        "measured on cpu while prepare.py ran" in item.en for item in report.answer.assumptions
    )
    moved = json.loads((project / "next.json").read_text())["context_device_map"]
    assert "prepare/cv2.resize" not in moved


def test_a_plan_that_matches_no_call_is_a_finding(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = {"context_device_map": {"prepare/cv2.flip": "cuda:0", "prepare/cv2.resize": "cuda:0"}}
    for moved, rule in (
        (("prepare/cv2.flip",), "FL102"),
        (tuple(plan["context_device_map"]), "FL103"),
    ):
        (project / "plan.json").write_text(json.dumps({"context_device_map": dict.fromkeys(moved, "cuda:0")}))  # fmt: skip
        words = ["flow", "run", "prepare.py", "--plan", "plan.json", "--format", "json", "--", "2"]
        assert run(words) == 1
        report = Report.from_json(capfd.readouterr().out)
        (finding,) = report.findings
        assert finding.rule == rule
        assert "prepare/cv2.flip" in str(finding.evidence)
        assert report.answer is not None
        assert report.answer.state == "warning"
        assert "prepare/cv2.flip (not called)" in report.answer.lines[0].en


def test_results_that_differ_are_traced_to_their_line(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of three moved functions is wrong on what the probes do not cover."""
    from torchstone.dataflow.migration import catalogue

    (project / "three.py").write_text(
        "import cv2\nimport numpy as np\n"
        "image = np.arange(4800, dtype=np.uint8).reshape(40, 40, 3)\n"
        "a = cv2.resize(image, (16, 16))\n"
        "b = cv2.flip(a, 1)\n"
        "c = cv2.copyMakeBorder(b, 1, 1, 1, 1, 0)\n"
        "d = np.concatenate([c[:4], c[4:]])\n"
    )
    spec = catalogue()["cv2.flip"]
    seen: list[int] = []

    def wrong(src, **options):
        made = spec.backend(src, **options)
        if tuple(src.shape[-2:]) == (16, 16):
            seen.append(1)
            made = made.clone()
            made[..., 0, 0] += 1
        return made

    changed = dataclasses.replace(spec, backend=wrong)
    monkeypatch.setattr(
        "torchstone.dataflow.migration.migrator.catalogue",
        lambda: {**catalogue(), "cv2.flip": changed},
    )
    monkeypatch.setattr("torchstone.dataflow.migration.migrator.RATE", 0.0)
    monkeypatch.setattr(
        "torchstone.dataflow.migration.proof.sampling.Sampler.wants", lambda *_: False
    )
    names = ("cv2.resize", "cv2.flip", "cv2.copyMakeBorder", "numpy.concatenate")
    (project / "plan.json").write_text(
        json.dumps({"context_device_map": dict.fromkeys(names, "cuda:0")})
    )
    words = ["flow", "run", "three.py", "--plan", "plan.json", "--format", "json"]
    assert run(words) == 1
    report = Report.from_json(capfd.readouterr().out)
    assert seen
    for finding in report.findings:
        assert finding.rule == "FL101"
        assert "the cause is cv2.flip" in finding.message("en")
        assert finding.line == 5
    assert report.answer is not None
    assert "three.py:5" in report.answer.lines[0].en
    assert "最多相差" in report.answer.lines[0].zh
