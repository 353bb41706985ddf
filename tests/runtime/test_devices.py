"""The table of devices: figures, names, and what a user may add."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.core.errors import ConfigError, UsageError
from torchstone.runtime.devices import (
    Device,
    device,
    format_of,
    known_devices,
    load_devices,
    read_devices,
)

MINE = """
[mine]
title = "My accelerator"
aliases = ["m1"]
memory_bytes = 1000
memory_bytes_per_second = 2e9
vector_flops_per_second = 1e12
source = "its datasheet"
[mine.peaks]
float32 = 1e12
bfloat16 = 4e12
"""


@pytest.mark.parametrize(
    ("name", "dtype", "flops"),
    [
        ("h100", "bfloat16", 989.4e12),
        ("h100", "tf32", 494.7e12),
        ("h100", "float8", 1978.9e12),
        ("h100-pcie", "bfloat16", 756.5e12),
        ("h200", "bfloat16", 989.4e12),
        ("a100", "bfloat16", 312e12),
        ("a100-40", "int8", 624e12),
        ("b200", "bfloat16", 2250e12),
        ("gb200", "float8", 5000e12),
        ("mi300x", "bfloat16", 1307.4e12),
        ("rtx4090", "bfloat16", 165.2e12),
        ("rtx3090", "float16", 71.2e12),
        ("l40s", "bfloat16", 362.05e12),
        ("l4", "float16", 121e12),
        ("v100", "float16", 125e12),
        ("t4", "float16", 65e12),
        ("910b", "float16", 353.9e12),
    ],
)
def test_peaks_are_the_dense_ones(name: str, dtype: str, flops: float) -> None:
    assert device(name).peak_flops(dtype) == flops


@pytest.mark.parametrize("item", known_devices().values(), ids=lambda item: item.name)
def test_every_device_is_whole(item: Device) -> None:
    assert item.source
    assert item.title
    assert item.memory_bytes % 2**30 == 0
    rates = [
        item.peaks[name] for name in ("float32", "tf32", "float16", "float8") if name in item.peaks
    ]
    assert rates == sorted(rates), "fewer bits are never slower"
    if "tf32" in item.peaks and item.name not in ("rtx4090", "rtx3090"):
        # TF32 runs at half the rate of bfloat16; consumer cards halve bfloat16 once more
        assert item.peaks["bfloat16"] == pytest.approx(2 * item.peaks["tf32"], rel=0.03)
    keys = {"peaks." + name for name in item.peaks}
    keys |= {"vector_flops_per_second", "memory_bytes_per_second", "node_devices"}
    keys |= {"link_bytes_per_second", "network_bytes_per_second"}
    assert set(item.unverified) <= keys


def test_ascend_is_cores_times_rate_times_clock() -> None:
    assert device("910b").peak_flops("float16") == pytest.approx(24 * 4096 * 2 * 1.8e9, rel=1e-3)
    assert device("910b3").peak_flops("float16") == pytest.approx(20 * 4096 * 2 * 1.8e9, rel=1e-3)
    assert "peaks.float16" in device("910b").unverified
    assert "未能" in device("910b").cited().zh


def test_memory_is_what_is_soldered_on() -> None:
    # a driver was seen to report 42,405,855,232 of the 40 GiB of an A100
    assert 42_405_855_232 < device("a100-40").memory_bytes < 1.02 * 42_405_855_232


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("H100", "h100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("RTX 4090", "rtx4090"),
        ("4090", "rtx4090"),
        ("ascend-910B", "910b"),
        ("AMD Instinct MI300X", "mi300x"),
    ],
)
def test_a_device_answers_to_many_names(given: str, name: str) -> None:
    assert device(given).name == name


def test_an_unknown_device_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'h100'"):
        device("h10")
    with pytest.raises(UsageError, match="choose from h100, "):
        device("abacus")


def test_number_formats() -> None:
    assert format_of("torch.float8_e4m3fn") == "float8"
    assert format_of("bf16") == "bfloat16"
    assert format_of("complex64") == "float32"
    with pytest.raises(UsageError, match="did you mean 'bfloat16'"):
        format_of("bfloat17")


def test_another_unit_stands_in_for_a_missing_one() -> None:
    v100, a100 = device("v100"), device("a100")
    assert v100.peak("bfloat16").format == "float32"
    assert a100.peak("float8").format == "bfloat16"
    assert a100.peak("bfloat16").format == "bfloat16"
    with pytest.raises(UsageError, match="float64"):
        device("910b").peak("float64")


def test_the_ridge_is_peak_over_bandwidth() -> None:
    assert device("h100").ridge("bfloat16") == pytest.approx(989.4 / 3.35)


def test_a_user_adds_devices(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE, "utf-8")
    mine = load_devices(path)
    found = device("M1", mine)
    assert (found.name, found.memory_bytes, found.peak_flops("bf16")) == ("mine", 1000, 4e12)
    assert found.link_bytes_per_second is None
    assert found.node_devices == 1
    assert device("h100", mine).name == "h100"


def test_the_users_word_comes_first() -> None:
    table = read_devices({"h100": _table(memory_bytes=7)}, "here")
    assert device("h100", table).memory_bytes == 7


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"memory_byte": 1}, "did you mean 'memory_bytes'"),
        ({"memory_bytes": -1}, "greater than 0"),
        ({"memory_bytes": 1.5}, "whole number"),
        ({"memory_bytes": True}, "whole number"),
        ({"memory_bytes_per_second": 0}, "greater than 0"),
        ({"memory_bytes_per_second": float("nan")}, "greater than 0"),
        ({"memory_bytes_per_second": float("inf")}, "greater than 0"),
        ({"memory_bytes_per_second": "fast"}, "greater than 0"),
        ({"vector_flops_per_second": False}, "greater than 0"),
        ({"node_devices": 0}, "greater than 0"),
        ({"title": ""}, "words"),
        ({"aliases": "one"}, "a list of words"),
        ({"aliases": [1]}, "a list of words"),
        ({"peaks": {}}, "FLOP/s by number format"),
        ({"peaks": {"float32": 1e12, "bf16": 1e12}}, "did you mean 'bfloat16'"),
        ({"peaks": {"bfloat16": 1e12}}, "float32"),
        ({"peaks": {"float32": -1e12}}, "peaks.float32"),
    ],
)
def test_a_wrong_entry_is_named(change: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        read_devices({"mine": _table(**change)}, "my.toml")
    assert "my.toml [mine]" in error.value.where
    assert error.value.say("zh") != error.value.say("en")


@pytest.mark.parametrize("key", ["title", "source", "memory_bytes", "peaks"])
def test_a_missing_key_is_named(key: str) -> None:
    table = _table()
    del table[key]
    with pytest.raises(ConfigError, match=f"no {key}"):
        read_devices({"mine": table}, "my.toml")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ConfigError, match="does not have"):
        read_devices({"a": _table(aliases=["x"]), "b": _table(aliases=["X"])}, "my.toml")


@pytest.mark.parametrize("text", ["[mine", "mine = 3", "\x00", "[a]\n[a]\n"])
def test_a_broken_file_is_no_traceback(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml"):
        load_devices(path)


def test_a_missing_file_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        load_devices(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="got"):
        load_devices(tmp_path)


def _table(**changes: object) -> dict[str, object]:
    table: dict[str, object] = {
        "title": "Mine",
        "source": "its datasheet",
        "memory_bytes": 1000,
        "memory_bytes_per_second": 2e9,
        "vector_flops_per_second": 1e12,
        "peaks": {"float32": 1e12},
    }
    return table | changes
