"""The three figures of each stage, and the report made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.cost.ocr.conftest import SMALL_CONFIG, SMALL_PAGE, write_folder
from torchstone.core.errors import InputError, UsageError
from torchstone.cost.counting.engine import run
from torchstone.cost.ocr import (
    AnalysisConfig,
    DeepSeekOCRSession,
    DeepseekOCRStaticAnalyzer,
    StageAnalysisResult,
)
from torchstone.cost.ocr.analysis.folding import full_analysis
from torchstone.cost.records.ledger import Cost, Failure, Key, ModuleFacts, Tally

STAGES = ["sam", "clip", "projector", "prefill", "decode"]


def test_figures_of_the_published_model(letter_report: dict[str, Any]) -> None:
    stages = letter_report["stages"]
    assert list(stages) == STAGES
    assert stages["sam"]["flops"] == pytest.approx(9.769092e11 + 6 * 3.256208e11, rel=1e-6)
    assert stages["clip"]["flops"] == pytest.approx(1.617157e11 + 6 * 6.200475e10, rel=1e-6)
    assert stages["projector"]["flops"] == 1.342177280e9 + 6 * 5.24288e8
    assert [stages[name]["params"] for name in STAGES] == [
        95_569_152,
        303_177_728,
        2_622_720,
        2_769_255_680,
        165_478_400,
    ]


@pytest.mark.parametrize(
    ("length", "known"), [(273, 3.180355e11), (903, 1.086916e12), (1024, 1.240173e12)]
)
def test_prefill_lengths(published: DeepseekOCRStaticAnalyzer, length: int, known: float) -> None:
    result = published.analyze_stage_isolated("prefill", AnalysisConfig(seq_len=length))
    assert result.flops_isolated == result.flops_analytic
    assert result.flops == pytest.approx(known, rel=2e-6)


def test_the_three_figures_agree_to_the_last_digit(letter_report: dict[str, Any]) -> None:
    for name, stage in letter_report["stages"].items():
        three = {stage["flops_isolated"], stage["flops_extracted"], stage["flops_analytic"]}
        assert three == {stage["flops"]}, name
        assert not any("differ" in item for item in stage["notes"])


def test_stages_add_up_to_the_total(letter_report: dict[str, Any]) -> None:
    stages, total = letter_report["stages"], letter_report["total"]
    assert sum(stages[name]["flops"] for name in STAGES[:-1]) == total["flops"]
    assert sum(stages[name]["activations"] for name in STAGES[:-1]) == total["activations"]
    assert total["params"] == 3_336_106_240
    # the learned line break and the separator belong to no stage
    assert sum(stage["params"] for stage in stages.values()) == total["params"] - 2 * 1280
    assert total["decode_flops_per_token"] == stages["decode"]["flops"]


def test_operators_add_up_and_come_largest_first(letter_report: dict[str, Any]) -> None:
    for stage in letter_report["stages"].values():
        values = list(stage["operators"].values())
        assert sum(values) == stage["flops"]
        assert values == sorted(values, reverse=True)


def test_the_counter_of_torch_agrees_on_the_vision_stages(
    published: DeepseekOCRStaticAnalyzer,
) -> None:
    model = published.m_session.m_model
    pixels = torch.empty((2, 3, 640, 640), dtype=torch.bfloat16, device="meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.get_submodule("model.sam_model")(pixels)
    config = AnalysisConfig(crop_mode=False, image_size=640)
    assert counter.get_total_flops() == 2 * published.analyze_stage_isolated("sam", config).flops


def test_second_generation(second: DeepseekOCRStaticAnalyzer) -> None:
    report = second.generate_report(AnalysisConfig(image_size=768, image_w=1700, image_h=2200))
    assert report["total"]["params"] == 3_389_119_360
    for name, stage in report["stages"].items():
        three = {stage["flops_isolated"], stage["flops_extracted"], stage["flops_analytic"]}
        assert len(three) == 1, name
    assert any("learned queries" in item for item in report["stages"]["clip"]["notes"])
    assert report["metadata"]["prompt_tokens"] == 1 + 1121 + 9


def test_different_lengths_are_explained(published: DeepseekOCRStaticAnalyzer) -> None:
    stages = published.analyze_all_stages(AnalysisConfig(image_w=600, image_h=600, seq_len=512))
    prefill, decode = stages["prefill"], stages["decode"]
    assert prefill.flops == prefill.flops_isolated == prefill.flops_analytic
    assert prefill.flops_extracted != prefill.flops
    assert "because they are for 512 and 283 tokens" in prefill.notes[-1]
    assert "because they are for 512 and 284 tokens" in decode.notes[-1]
    assert not any("differ" in item for item in stages["sam"].notes)


def test_modules_are_cumulative_and_not_counted_twice(
    published: DeepseekOCRStaticAnalyzer,
) -> None:
    full = published.analyze_full_model(AnalysisConfig(image_w=600, image_h=600))
    by_module = full["by_module"]
    assert by_module[""] == full["total_flops"] == sum(full["by_operator"].values())
    layers = [by_module[f"model.layers.{i}"] for i in range(12)]
    assert by_module["model.layers"] == sum(layers)
    assert (
        sum(full["by_module_and_operator"]["model.sam_model"].values())
        == (by_module["model.sam_model"])
    )
    extracted = published._extract_stage_from_full_analysis("clip", full)
    assert extracted.flops == by_module["model.vision_model"]
    assert full["params"][""] == full["total_params"] == 3_336_106_240
    assert full["decode"]["by_module"][""] < full["total_flops"] / 100


def test_unknown_stage(published: DeepseekOCRStaticAnalyzer) -> None:
    with pytest.raises(ValueError, match=r"unknown stage 'vit'.*sam, clip, projector"):
        published.analyze_stage_isolated("vit", AnalysisConfig())
    assert published.analyze_stage_isolated("Projector", AnalysisConfig()).stage_name == "projector"


def test_the_map_is_the_seeds(published: DeepseekOCRStaticAnalyzer) -> None:
    assert published.m_stage_module_map == {
        "sam": ["sam_model"],
        "clip": ["vision_model"],
        "projector": ["projector"],
        "prefill": ["embed_tokens", "layers", "norm"],
        "decode": ["lm_head"],
    }


def test_a_real_session_is_counted_and_left_alone(small: DeepSeekOCRSession) -> None:
    before = dict(small.m_model.named_parameters())
    values = {name: item.clone() for name, item in before.items()}
    stages = DeepseekOCRStaticAnalyzer(small).analyze_all_stages(AnalysisConfig(**SMALL_PAGE))
    for name, stage in stages.items():
        assert stage.flops_isolated == stage.flops_extracted == stage.flops_analytic, name
    for name, item in small.m_model.named_parameters():
        assert item is before[name]
        assert torch.equal(item, values[name])
    assert not list(_hooks(small.m_model))


def _hooks(model: nn.Module) -> Iterator[Any]:
    for module in model.modules():
        yield from module._forward_hooks.values()
        yield from module._forward_pre_hooks.values()


def test_the_examples_counter_agrees_with_real_tensors(small: DeepSeekOCRSession) -> None:
    analyzer = DeepseekOCRStaticAnalyzer(small)
    config = AnalysisConfig(**SMALL_PAGE)
    ids, kwargs = analyzer.prepare_inputs(config)
    with torch.no_grad():
        output = small.m_model(ids, **kwargs)
    assert output.logits.shape == (1, ids.shape[1], 512)
    assert analyzer.generate_report(config)["metadata"]["prompt_tokens"] == ids.shape[1]


def test_report_is_plain_data(letter_report: dict[str, Any]) -> None:
    assert list(letter_report) == ["metadata", "total", "stages", "notes"]
    assert json.loads(json.dumps(letter_report)) == letter_report
    metadata = letter_report["metadata"]
    for key in ("image_h", "image_w", "base_size", "image_size", "seq_len", "crop_mode",
                "patch_size", "downsample_ratio", "use_synthetic_inputs", "fvcore_version",
                "convention", "device", "dtype", "torch_version"):  # fmt: skip
        assert key in metadata
    assert metadata["seq_len"] == 913
    assert metadata["crops"] == [2, 3]
    assert set(letter_report["stages"]["sam"]) == {
        "params", "flops", "activations", "operators", "flops_isolated", "flops_extracted",
        "flops_analytic", "notes",
    }  # fmt: skip


def test_chinese_reports(published: DeepseekOCRStaticAnalyzer) -> None:
    analyzer = DeepseekOCRStaticAnalyzer(published.m_session, lang="zh")
    report = analyzer.generate_report(AnalysisConfig(image_w=600, image_h=600, seq_len=64))
    texts = [*report["notes"], *(n for stage in report["stages"].values() for n in stage["notes"])]
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in text) for text in texts), texts
    with pytest.raises(UsageError, match="'fr'"):
        DeepseekOCRStaticAnalyzer(published.m_session, lang="fr")


def failing(paths: set[str]) -> Any:
    """A counter that stops in modules of these classes."""

    def count(model: nn.Module, inputs: Any) -> Cost:
        if type(model).__name__ in paths:
            return Cost({}, {"": ModuleFacts("", "X")}, failure=Failure("a.b", "aten.mm", "E: no"))
        return run(model, inputs)

    return count


def test_a_stage_that_fails_alone_is_extracted(small: DeepSeekOCRSession) -> None:
    analyzer = DeepseekOCRStaticAnalyzer(small, count=failing({"ClipEncoder"}))
    clip = analyzer.analyze_all_stages(AnalysisConfig(**SMALL_PAGE))["clip"]
    assert clip.flops_isolated is None
    assert clip.flops == clip.flops_extracted == clip.flops_analytic
    assert "isolated failed in a.b at aten.mm: E: no" in clip.notes
    assert clip.operators


def test_where_all_counting_fails_the_closed_forms_stay(small: DeepSeekOCRSession) -> None:
    everything = {"ClipEncoder", "DeepseekOCRForCausalLM"}
    analyzer = DeepseekOCRStaticAnalyzer(small, count=failing(everything))
    config = AnalysisConfig(**SMALL_PAGE)
    report = analyzer.generate_report(config)
    clip = report["stages"]["clip"]
    assert clip["flops_isolated"] is None
    assert clip["flops_extracted"] is None
    assert clip["flops"] == clip["flops_analytic"] > 0
    assert "counting failed: the closed form is taken" in clip["notes"]
    assert report["total"]["flops"] == sum(report["stages"][name]["flops"] for name in STAGES[:-1])
    assert report["total"]["bytes"] is None
    strict = AnalysisConfig(**SMALL_PAGE, use_analytic_fallback=False)
    with pytest.raises(RuntimeError, match=r"full model failed in a\.b"):
        analyzer.analyze_full_model(strict)
    with pytest.raises(RuntimeError, match="failed"):
        analyzer.generate_report(strict)


def test_without_the_fallback_there_is_no_closed_form(small: DeepSeekOCRSession) -> None:
    analyzer = DeepseekOCRStaticAnalyzer(small, count=failing({"ClipEncoder"}))
    config = AnalysisConfig(**SMALL_PAGE, use_analytic_fallback=False)
    isolated = analyzer.analyze_stage_isolated("clip", config)
    assert (isolated.flops_isolated, isolated.flops_analytic) == (None, None)


def test_a_model_that_does_other_work_is_noted(small: DeepSeekOCRSession) -> None:
    def twice(model: nn.Module, inputs: Any) -> Cost:
        cost = run(model, inputs)
        if type(model).__name__ != "Projector":
            return cost
        return cost.renamed(entries={key: tally * 2 for key, tally in cost.entries.items()})

    analyzer = DeepseekOCRStaticAnalyzer(small, count=twice)
    projector = analyzer.analyze_all_stages(AnalysisConfig(**SMALL_PAGE))["projector"]
    assert projector.flops == 2 * (projector.flops_extracted or 0)
    assert sum("other work than the published" in item for item in projector.notes) == 2


def test_a_foreign_session_will_do(small: DeepSeekOCRSession) -> None:
    model = DeepSeekOCRSession.from_config("small", "cpu", dtype=torch.float32).m_model
    model.config = SimpleNamespace(to_dict=lambda: SMALL_CONFIG)  # type: ignore[assignment]
    session = SimpleNamespace(m_model=model, m_tokenizer=None, m_device=torch.device("cpu"))
    ours = DeepseekOCRStaticAnalyzer(small).generate_report(AnalysisConfig(**SMALL_PAGE))
    theirs = DeepseekOCRStaticAnalyzer(session).generate_report(AnalysisConfig(**SMALL_PAGE))
    assert theirs["stages"] == ours["stages"]
    assert theirs["total"] == ours["total"]
    nothing = SimpleNamespace(m_model=nn.Linear(1, 1), m_tokenizer=None, m_device="cpu")
    with pytest.raises(InputError, match=r"m_model\.config"):
        DeepseekOCRStaticAnalyzer(nothing)  # type: ignore[arg-type]


def test_a_model_without_a_stage_says_so(small: DeepSeekOCRSession) -> None:
    bare = nn.Module()
    bare.lm_head = nn.Linear(64, 512)
    bare.config = SimpleNamespace(to_dict=lambda: SMALL_CONFIG)  # type: ignore[assignment]
    session = SimpleNamespace(m_model=bare, m_tokenizer=None, m_device=torch.device("cpu"))
    analyzer = DeepseekOCRStaticAnalyzer(session)
    result = analyzer.analyze_stage_isolated("sam", AnalysisConfig(**SMALL_PAGE))
    assert result.flops_isolated is None
    assert "sam_model is not part of this model" in result.notes


def test_folding_a_hand_made_cost() -> None:
    cost = Cost(
        {
            Key("a.b", "forward", "aten.mm", "float32"): Tally(1, 10, elements=3),
            Key("a", "forward", "aten.mm", "float32"): Tally(1, 5, elements=1),
            Key("", "forward", "aten.relu", "float32"): Tally(1, 0, 7),
        },
        {path: ModuleFacts(path, "X", parameters=2) for path in ("", "a", "a.b")},
        uncounted=frozenset({"aten.odd"}),
    )
    full = full_analysis(cost)
    assert full["by_module"] == {"": 15, "a": 15, "a.b": 10}
    assert full["by_module_and_operator"]["a"] == {"aten.mm": 15}
    assert full["by_operator"] == {"aten.mm": 15, "aten.relu": 0}
    assert full["acts_by_module"] == {"": 4, "a": 4, "a.b": 3}
    assert full["params"] == {"": 6, "a": 4, "a.b": 2}
    assert [item.say() for item in full["notes"]] == ["operators without a counter: aten.odd"]


SEED_EXAMPLE = """
from pathlib import Path

from torchstone.cost import DeepSeekOCRSession
from torchstone.cost import (
    DeepseekOCRStaticAnalyzer,
    AnalysisConfig,
)
from torchstone.cost import (
    write_static_compute_json,
    write_static_compute_markdown,
)

# 1. Initialize session
session = DeepSeekOCRSession.from_local(
    model_path="/path/to/models/deepseek-ocr",
    device="cuda:0",
    use_flash_attn=True,
)

# 2. Create analyzer
analyzer = DeepseekOCRStaticAnalyzer(session)

# 3. Configure analysis
config = AnalysisConfig(
    base_size=1024,
    image_size=640,
    seq_len=512,
    crop_mode=True,
)

# 4. Generate report
report = analyzer.generate_report(config)

# 5. Write outputs
write_static_compute_json(report, Path("static_compute.json"))
write_static_compute_markdown(report, Path("static_compute.md"))

# 6. Access results
print(f"Total params: {report['total']['params'] / 1e6:.2f}M")
print(f"Total FLOPs: {report['total']['flops'] / 1e9:.2f}G")
for stage, data in report['stages'].items():
    print(f"{stage}: {data['flops'] / 1e9:.2f}G FLOPs")
"""


def test_the_usage_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cost.ocr.test_session import PUBLISHED_CONFIG

    folder = write_folder(tmp_path / "models" / "deepseek-ocr", PUBLISHED_CONFIG)
    monkeypatch.chdir(tmp_path)
    exec(SEED_EXAMPLE.replace("/path/to/models/deepseek-ocr", str(folder)), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Total params: 3336.11M", "Total FLOPs: 3530.11G"]
    assert lines[2:] == [
        "sam: 2279.39G FLOPs",
        "clip: 409.73G FLOPs",
        "projector: 3.44G FLOPs",
        "prefill: 603.98G FLOPs",
        "decode: 1.18G FLOPs",
    ]
    assert json.loads(Path("static_compute.json").read_text("utf-8"))["total"]["params"]
    assert "## Per-Stage Breakdown" in Path("static_compute.md").read_text("utf-8")


def test_results_have_their_own_lists() -> None:
    one, two = StageAnalysisResult("sam"), StageAnalysisResult("sam")
    one.notes.append("x")
    assert two.notes == []
