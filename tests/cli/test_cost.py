"""`torchstone cost`: targets, questions, languages, exit codes and errors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from torchstone.cli.main import run
from torchstone.core.report import Report

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Breaks(Net):
    def forward(self, x):
        return self.head(self.features(x))


def build():
    return Net(), torch.empty(2, 3, 16, 16)


number = 3
"""
LLAMA = (
    "hf:llama?num_hidden_layers=6&hidden_size=64&intermediate_size=128&num_attention_heads=4"
    "&num_key_value_heads=2&vocab_size=100"
)
CONVOLUTIONS = 2 * 14 * 14 * 8 * 27 + 2 * 12 * 12 * 8 * 72


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def figures(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    assert run(["cost", *args, "--format", "json"]) == code
    data = json.loads(capsys.readouterr().out)
    Report.from_json(json.dumps(data))
    return {item["name"]: item for item in data["measures"]}


def stages(table: dict[str, Any]) -> list[str]:
    return [row[0]["en"] if isinstance(row[0], dict) else row[0] for row in table["rows"]]


def test_a_function_with_its_inputs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "net.py:build")
    assert found["flops"]["value"] == 2 * (CONVOLUTIONS + 2 * 8 * 10)
    assert found["params"]["value"] == 224 + 584 + 90
    table = next(item for item in found["flops"]["evidence"] if item["kind"] == "table")
    assert stages(table) == ["features", "head", "other"]


def test_inputs_by_shape_and_training(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = figures(capsys, "net.py:Net", "--input", "1,3,16,16")
    step = figures(capsys, "net.py:Net", "--input", "1,3,16,16", "--train")
    assert step["forward_flops"]["value"] == one["flops"]["value"]
    # the first convolution needs no gradient of the picture
    first = 2 * 14 * 14 * 8 * 27
    assert step["backward_flops"]["value"] == 2 * one["flops"]["value"] - first
    assert step["optimizer_bytes"]["value"] == 2 * step["parameter_bytes"]["value"]
    low = figures(capsys, "net.py:Net", "--input", "1,3,16,16:bf16", "--dtype", "bf16")
    assert low["parameter_bytes"]["value"] * 2 == one["parameter_bytes"]["value"]


def test_sweep_devices_and_serving(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(
        capsys, LLAMA, "--batch", "1,4", "--seq", "16,64", "--context", "32,128",
        "--device", "h100,910b",
    )  # fmt: skip
    table = found["sweep"]["evidence"][0]
    assert [row[:2] for row in table["rows"]] == [[1, 16], [1, 64], [4, 16], [4, 64]]
    assert table["rows"][3][2] > table["rows"][0][2] * 15
    assert {"seconds_h100", "seconds_910b", "memory_h100", "memory_910b"} <= found.keys()
    served, growth, forms = found["decode_flops"]["evidence"]
    assert [row[1] for row in served["rows"]] == [32, 128]
    assert growth["kind"] == "plot"
    assert all(row[1] == row[2] for row in forms["rows"])  # counted, and by closed form


def test_the_kv_cache_is_part_of_the_peak(capsys: pytest.CaptureFixture[str]) -> None:
    """A headline of 15 GiB beside "does not fit on 80 GB" contradicts itself."""
    words = ["cost", "hf:llama-3-8b", "--dtype", "bf16", "--device", "h100", "--lang", "en"]
    assert run([*words, "--context", "512k"]) == 1
    said = capsys.readouterr().out
    assert "79.33 GiB at peak. Does not fit" in said.splitlines()[0]
    assert "KV cache 64 GiB" in said
    assert "one pass and the KV cache" in said


def test_points_of_a_sweep_that_do_not_fit_are_on_the_first_screen(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cost", "net.py:Net", "--input", "1,3,16,16", "--device", "4090", "--lang", "en"]
    assert run([*words, "--batch", "1,8,100000000"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].startswith("! ")
    (line,) = (row for row in first if "sweep:" in row)
    assert "does not fit on NVIDIA GeForce RTX 4090 24 GB at batch 100000000 (" in line
    assert "batch 8" not in line
    assert run([*words, "--batch", "1,8"]) == 0
    assert capsys.readouterr().out.startswith("✓ ")


def test_repeated_flags_add_up_and_a_replaced_batch_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    words = ["cost", "idle.py:Net", "--input", "8,4", "--lang", "en"]
    (project / "idle.py").write_text(IDLE)
    assert (
        run([*words, "--device", "h100", "--device", "a100", "--batch", "4", "--batch", "2"]) == 3
    ), "a partial count"
    said = capsys.readouterr().out
    assert "on NVIDIA H100" in said
    assert "on NVIDIA A100" in said
    assert "input (--batch replaces 8): (4, 4) float32" in said
    assert said.startswith("! Partial: ")
    assert not [item for item in recwarn if "Partial" in str(item.message)], "said twice"
    assert run([*words, "--batch", "8"]) == 3
    assert "input: (8, 4) float32" in capsys.readouterr().out


IDLE = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.used(x)
"""


def test_what_does_not_fit_is_a_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "mine.toml").write_text(
        '[tiny]\ntitle = "Tiny"\nmemory_bytes = 100_000\nmemory_bytes_per_second = 1e9\n'
        'vector_flops_per_second = 1e9\nsource = "made up"\n[tiny.peaks]\nfloat32 = 1e9\n'
    )
    assert run(["cost", LLAMA, "--device", "tiny", "--devices", "mine.toml"]) == 1
    out = capsys.readouterr().out
    assert "Does not fit on Tiny" in out
    assert run(["cost", LLAMA, "--device", "tiny", "--devices", "mine.toml", "-v"]) == 1
    assert "COST01" in capsys.readouterr().out
    assert run(["cost", LLAMA, "--device", "tiny", "--devices", "mine.toml", "--lang", "zh"]) == 1
    assert "放不进 Tiny" in capsys.readouterr().out


DEVICE = (
    '{table}title = "Mine"\nmemory_bytes = {memory}\nmemory_bytes_per_second = 1e12\n'
    'vector_flops_per_second = 1e12\nsource = "made up"\npeaks = {{ float32 = 1e12 }}\n'
)


def test_devices_of_the_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = DEVICE.format(table="[tool.torchstone.devices.mine]\n", memory=2**30)
    (project / "pyproject.toml").write_text(table)
    found = figures(capsys, "net.py:build", "--device", "mine,h100")
    assert {"seconds_mine", "memory_mine", "seconds_h100"} <= found.keys()
    assert run(["check", "net.py"]) in (0, 1), "other commands leave the table alone"
    (project / "mine.toml").write_text(DEVICE.format(table="[mine]\n", memory=100))
    args = ["cost", "net.py:build", "--device", "mine"]
    assert run(args) == 0
    assert run([*args, "--devices", "mine.toml"]) == 1, "the file comes first: it does not fit"
    (project / "other.toml").write_text(table.replace("mine", "other"))
    assert run([*args[:-1], "other", "--config", "other.toml"]) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("memory_bytes =", "memory ="), "'memory'"),
        (("1e12 }", "-1 }"), "-1"),
        (("[tool", "[tool.torchstone.devices]\nother = 3\n[tool"), "a table for each device"),
        (("float32 = 1e12", "bfloat16 = 1e12"), "no float32"),
        (("torchstone.devices", "torchstone.device"), "'device'"),
    ],
)
def test_a_broken_device_in_the_configuration(
    project: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], words: str
) -> None:
    table = DEVICE.format(table="[tool.torchstone.devices.mine]\n", memory=2**30)
    (project / "pyproject.toml").write_text(table.replace(*change))
    assert run(["cost", "net.py:build", "--device", "mine"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "pyproject.toml" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_that_nobody_reads_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(project / "pipe")
    assert run(["cost", "net.py:build", "-o", "pipe"]) == 2
    assert "expected a place that can be written" in capsys.readouterr().err


def test_utilisation(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(
        capsys, LLAMA, "--train", "--device", "h100", "--step-seconds", "2", "--count", "4"
    )
    flops = found["flops"]["value"]
    peak = found["mfu_h100"]["evidence"][2]["value"] / (2 * 4)
    assert found["mfu_h100"]["value"] == pytest.approx(flops / (2 * 4 * peak))


def test_stages_from_a_preset_and_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, LLAMA, "--stages", "decoder-only")
    names = stages(found["flops"]["evidence"][0])
    assert {"embedding", "attention", "feed-forward", "norm", "head"} <= set(names)
    for name, text in (
        ("s.toml", 'all = ["features.*"]\n'),
        ("s.json", '{"stages": {"all": "features.*"}}'),
        ("s.yaml", "all: [features.*]\n"),
    ):
        (project / name).write_text(text)
        found = figures(capsys, "net.py:build", "--stages", name)
        assert stages(found["flops"]["evidence"][0]) == ["all", "other"]


def test_conventions(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = figures(capsys, LLAMA)["flops"]["value"]
    assert figures(capsys, LLAMA, "--convention", "mac")["flops"]["value"] * 2 == whole
    assert figures(capsys, LLAMA, "--attention", "causal")["flops"]["value"] < whole
    for name in ("palm", "megatron", "fvcore"):
        assert figures(capsys, LLAMA, "--convention", name)[f"flops_{name}"]["value"] > 0


def test_a_model_that_stops_half_way(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cost", "net.py:Breaks", "--input", "2,3,16,16"]) == 3
    out = capsys.readouterr().out
    assert "Failed: head" in out
    assert "FLOP" in out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "no target"),
        (["net.py:number"], "torch.nn.Module"),
        (["missing.py"], "missing.py"),
        (["net.py:Net", "--input", "2,9"], "(2, 9)"),
        (["net.py:Net", "--input", "a,b"], "a,b"),
        (["net.py:Net", "--input", "2,3,16,16", "--device", "h1000"], "h100"),
        (["net.py:Net", "--input", "2,3,16,16", "--devices", "net.py", "--device", "x"], "net.py"),
        (["net.py:Net", "--input", "2,3,16,16", "--stages", "decoder"], "decoder-only"),
        (["net.py:Net", "--input", "2,3,16,16", "--stages", "gone.toml"], "gone.toml"),
        (["net.py:Net", "--input", "2,3,16,16", "--stages", "bad.yaml"], "bad.yaml"),
        (["net.py:Net", "--input", "2,3,16,16", "--plan", "zero=9"], "0 to 3"),
        (["net.py:Net", "--input", "2,3,16,16", "--plan", "zeroo=1"], "zero"),
        (["net.py:Net", "--input", "2,3,16,16", "--dtype", "bf17"], "bf16"),
        (["net.py:Net", "--input", "2,3,16,16", "--autocast", "bool"], "bf16 | fp16"),
        (["net.py:Net", "--input", "2,3,16,16", "--dtype", "int8"], "a floating-point format"),
        (["net.py:Net", "--input", "2,3,16,16", "--dtype", "bool"], "a floating-point format"),
        (["net.py:Net", "--input", "2,3,16,16", "--seq", "1k"], "with a sequence length"),
        (["net.py:Net", "--batch", str(2**62)], "from 1 to 1099511627776"),
        (["net.py:Net", "--input", f"{2**62},3,16,16"], "less than 2^63 bytes"),
        ([LLAMA, "--seq", str(2**62)], "from 1 to 1099511627776"),
        ([LLAMA, "--context", str(2**62)], "from 1 to 1099511627776"),
        ([LLAMA, "--device", "h100", "--step-seconds", "nan"], "greater than 0"),
        ([LLAMA, "--device", "h100", "--step-seconds", "1", "--count", "0"], "at least 1"),
        (["net.py:Net", "--input", "2,3,16,16", "--context", "1k"], "--context"),
        (["net.py:Net", "--input", "2,3,16,16", "--checkpoint"], "checkpoint"),
        (["net.py:Net", "--input", "2,3,16,16", "--batch", "-1"], "-1"),
        (["net.py:Net", "--input", "2,3,16,16", "--step-seconds", "1"], "--device"),
        (["net.py:Net", "--input", "2,3,16,16", "--convention", "palm"], "palm"),
        (["net.py:Net", "--train", "--infer"], "--infer"),
        (["hf:no_such_model"], "no_such_model"),
    ],
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_mistakes_are_told(
    project: Path, capsys: pytest.CaptureFixture[str], args: list[str], words: str, lang: str
) -> None:
    (project / "bad.yaml").write_text("a: [1\n")
    assert run(["cost", *args, "--lang", lang, "-o", "out.json"]) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    if lang == "en":
        assert words in captured.err
    assert not (project / "out.json").exists()


@pytest.mark.parametrize("format", ["text", "markdown", "html", "agent"])
def test_every_format(project: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    for lang in ("en", "zh"):
        assert run(["cost", "net.py:build", "--train", "--format", format, "--lang", lang]) == 0
        if format != "agent":
            assert "FLOPs" in capsys.readouterr().out
