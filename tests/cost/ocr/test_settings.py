"""Settings come from flags, or from Hydra with flags over it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from torchstone.core.errors import ConfigError, UsageError
from torchstone.core.options import options_of
from torchstone.cost.ocr.config import AnalysisConfig
from torchstone.cost.ocr.measured.settings import (
    CONF,
    RunSettings,
    compose,
    settings_from_flags,
    settings_from_mapping,
)


def test_no_flags_are_the_defaults() -> None:
    assert settings_from_flags([]) == RunSettings()


def test_flags() -> None:
    settings = settings_from_flags(
        ["--model", "deepseek-ocr", "--repeats", "0", "--image-h", "2200", "--no-crop-mode",
         "--seq-len", "512", "--peak", "h100", "--no-static-analysis", "--lang", "zh"]
    )  # fmt: skip
    assert settings == RunSettings(
        model="deepseek-ocr", repeats=0, peak="h100", enabled=False, lang="zh",
        analysis=AnalysisConfig(image_h=2200, crop_mode=False, seq_len=512),
    )  # fmt: skip


def test_naming_an_image_is_asking_for_it() -> None:
    named = settings_from_flags(["--sample-image-path", "page.png"]).analysis
    assert named == AnalysisConfig(use_synthetic_inputs=False, sample_image_path="page.png")
    both = settings_from_flags(["--sample-image-path", "page.png", "--use-synthetic-inputs"])
    assert both.analysis.use_synthetic_inputs


def test_another_application_reaches_the_shipped_files(tmp_path: Path) -> None:
    hydra = pytest.importorskip("hydra")
    text = "defaults: [static_analysis: default, _self_]\n"
    text += "hydra: {searchpath: ['pkg://torchstone.cost.ocr.conf']}\n"
    (tmp_path / "app.yaml").write_text(text, "utf-8")
    with hydra.initialize_config_dir(version_base="1.3", config_dir=str(tmp_path)):
        assert hydra.compose("app").static_analysis.base_size == 1024


def test_the_shipped_files_hold_the_defaults() -> None:
    pytest.importorskip("hydra")
    composed = compose()
    section = composed["static_analysis"]
    assert section.pop("enabled") is True
    assert set(section) == {item.name for item in options_of(AnalysisConfig)}
    assert AnalysisConfig(**section) == AnalysisConfig()
    run = {key: value for key, value in composed.items() if key != "static_analysis"}
    assert set(run) == {item.name for item in options_of(RunSettings)} - {"analysis", "enabled"}
    assert settings_from_mapping(compose(), "here") == RunSettings()


def test_overrides_and_flags_over_them() -> None:
    pytest.importorskip("hydra")
    settings = settings_from_flags(
        ["static_analysis.image_h=300", "static_analysis.enabled=false", "repeats=2", "peak=1.5",
         "--image-h", "400"]
    )  # fmt: skip
    assert settings.analysis.image_h == 400
    assert (settings.repeats, settings.peak, settings.enabled) == (2, 1.5, False)


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    own = tmp_path / "it's a folder" / "static_analysis"
    own.mkdir(parents=True)
    (own / "wide.yaml").write_text("defaults: [default]\nimage_w: 3000\n", "utf-8")
    settings = settings_from_flags(["--config-dir", str(own.parent), "static_analysis=wide"])
    assert settings.analysis == AnalysisConfig(image_w=3000)
    (own / "default.yaml").write_text("image_w: 77\n", "utf-8")
    assert settings_from_flags(["--config-dir", str(own.parent)]).analysis.image_w == 77


@pytest.mark.parametrize(
    "text",
    [
        "image_h: [1, 2",
        "image_h: 5\n  image_w: 6\n",
        "\t- x: y: z",
        "{a: !!python/object/apply:os.getcwd []}",
    ],
)
def test_broken_yaml_is_named(tmp_path: Path, text: str) -> None:
    pytest.importorskip("hydra")
    own = tmp_path / "static_analysis"
    own.mkdir()
    (own / "default.yaml").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"files that Hydra can compose") as caught:
        settings_from_flags(["--config-dir", str(tmp_path)])
    assert str(tmp_path) in caught.value.where
    assert "default.yaml" in caught.value.given or "static_analysis" in caught.value.given
    assert "Hydra" in caught.value.say("zh")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["static_analysis=none"], "static_analysis"),
        (["no_such_key=1"], "no_such_key"),
        (["+static_analysis.imge_h=1"], "image_h"),
        (["static_analysis.image_h=tall"], "'tall', expected a value of type int"),
        (["static_analysis.enabled=maybe"], "true or false"),
        (["repeats=-1"], "a number from 0"),
        (["lang=fr"], "one of en, zh"),
        (["a b c ="], "files that Hydra"),
    ],
)
def test_wrong_overrides_are_named(arguments: list[str], said: str) -> None:
    pytest.importorskip("hydra")
    with pytest.raises(ConfigError, match=said):
        settings_from_flags(arguments)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    pytest.importorskip("hydra")
    with pytest.raises(ConfigError, match="no such folder"):
        settings_from_flags(["--config-dir", str(tmp_path / "none")])


def test_wrong_flags_are_named() -> None:
    with pytest.raises(UsageError, match="--no-such"):
        settings_from_flags(["--no-such"])
    with pytest.raises(UsageError, match="--image-h"):
        settings_from_flags(["--image-h", "tall"])


def test_a_section_must_be_a_table() -> None:
    with pytest.raises(ConfigError, match="a table"):
        settings_from_mapping({"static_analysis": [1]}, "here")


def test_without_hydra_flags_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hydra", None)
    assert settings_from_flags(["--repeats", "1"]).repeats == 1
    with pytest.raises(UsageError, match=r"torchstone\[hydra\]"):
        settings_from_flags(["repeats=1"])


def test_the_files_are_shipped() -> None:
    found: Any = sorted(path.relative_to(CONF).as_posix() for path in CONF.rglob("*.yaml"))
    assert found == ["config.yaml", "static_analysis/default.yaml"]
