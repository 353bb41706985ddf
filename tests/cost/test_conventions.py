"""The same work by other rules; and the page that explains them shows what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import transformers

from tests.cost.toys import step
from torchstone.core.errors import UsageError
from torchstone.cost.conventions import CONVENTIONS, RULES, by_convention
from torchstone.cost.counting.engine import run
from torchstone.cost.decoders.closed_forms import Decoder
from torchstone.cost.records.ledger import Cost

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("conventions.md", "zh/conventions.md")
TOKENS = 2048


def llama() -> transformers.LlamaConfig:
    return transformers.LlamaConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
    )


@pytest.fixture(scope="module")
def costs() -> dict[str, Cost]:
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(llama()).to(torch.bfloat16)
    ids = torch.zeros(1, TOKENS, dtype=torch.long, device="meta")
    return {
        "forward": run(model, {"input_ids": ids}),
        "training": run(model, {"input_ids": ids, "labels": ids}, train=True),
    }


def rows(page: str) -> list[tuple[str, str, int, int, str]]:
    text = (DOCS / page).read_text("utf-8")
    found = re.findall(
        r"^\| `(\w+)` \| (full|causal) \| ([\d,]+) \| ([\d,]+) \| (\w+) \|$", text, re.M
    )
    return [(a, b, int(c.replace(",", "")), int(d.replace(",", "")), e) for a, b, c, d, e in found]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_is_counted(page: str, costs: dict[str, Cost]) -> None:
    shown = rows(page)
    assert {row[0] for row in shown} == set(CONVENTIONS)
    for convention, attention, forward, training, unit in shown:
        for cost, value in ((costs["forward"], forward), (costs["training"], training)):
            figure = by_convention(
                cost, convention, attention=attention, config=llama(), sequence=TOKENS
            )
            assert (figure.value, figure.unit) == (value, unit), (page, convention, attention)


@pytest.mark.parametrize("page", PAGES)
def test_the_parts_of_the_page_are_arithmetic(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    decoder = Decoder.from_config(llama())
    work = decoder.prefill(1, TOKENS, logits="all")
    step_flops, table = 3 * work.flops, decoder.embedding_parameters
    figures = {
        "projections": work.projections,
        "scores": work.scores,
        "feed-forward": work.feed_forward,
        "head": work.head,
        "sum": work.flops,
        "step": step_flops,
        "parameters": decoder.parameters,
        "without scores": work.flops - work.scores,
        "fvcore": (work.flops - work.scores) // 2,
        "6N": 6 * decoder.parameters * TOKENS,
        "PaLM": 6 * decoder.parameters * TOKENS + 3 * work.scores,
        "Megatron": step_flops - 3 * work.scores // 2,
        "torchtitan": 6 * (decoder.parameters - table) * TOKENS + 3 * work.scores,
    }
    for name, value in figures.items():
        assert f"{value:,}" in text, name
    ratios = {
        "0.9332": figures["without scores"] / work.flops,
        "0.4666": figures["fvcore"] / work.flops,
        "0.0005": 2 * decoder.parameters / work.flops,
        "0.9986": figures["6N"] / step_flops,
        "1.0654": figures["PaLM"] / step_flops,
        "0.9666": figures["Megatron"] / step_flops,
        "1.00003": figures["torchtitan"] / step_flops,
    }
    for shown, ratio in ratios.items():
        assert f"{ratio:.{len(shown) - 2}f}" == shown
        assert shown in text


def test_6n_on_mixtures_is_as_wrong_as_the_page_says() -> None:
    for config, times in (
        (transformers.MixtralConfig(), 3.5),
        (transformers.DeepseekV3Config(), 16),
    ):
        decoder = Decoder.from_config(config)
        truth = 3 * decoder.prefill(1, TOKENS, logits="all").flops
        assert 6 * decoder.parameters * TOKENS / truth == pytest.approx(times, rel=0.02)


def test_megatron_leaves_the_router_out() -> None:
    config = transformers.MixtralConfig()
    work = Decoder.from_config(config).prefill(2, 512, logits="all")
    found = by_convention(step(), "megatron", config=config, batch=2, sequence=512)
    assert found.value == 3 * (work.flops - work.router - work.scores // 2)
    assert work.router > 0
    assert found.attention == "causal"


def test_palm_counts_active_parameters() -> None:
    config = transformers.MixtralConfig()
    decoder = Decoder.from_config(config)
    found = by_convention(step(), "palm", config=decoder, batch=2, sequence=512)
    # 12 L H Q T for each of the 1024 tokens
    scores = 12 * 32 * 32 * 128 * 512 * 1024
    assert found.value == 6 * decoder.active_parameters * 1024 + scores


def test_by_hand() -> None:
    assert by_convention(step()).value == 4800
    assert by_convention(step(), attention="causal").value == 4200
    assert by_convention(step(), "mac").value == 2400
    assert by_convention(step(), "mac", attention="causal").value == 2100
    # fvcore: forward only, attention unseen
    assert by_convention(step(), "fvcore").value == 500


def test_every_rule_is_said_in_both_languages() -> None:
    assert set(RULES) == set(CONVENTIONS)
    for rule in RULES.values():
        assert rule.en
        assert re.search("[\u4e00-\u9fff]", rule.zh)


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="did you mean 'flop'"):
        by_convention(step(), "flops")
    with pytest.raises(UsageError, match="attention"):
        by_convention(step(), "flop", attention="half")
    with pytest.raises(UsageError, match="no configuration"):
        by_convention(step(), "palm", sequence=2)
    with pytest.raises(UsageError, match="no sequence length"):
        by_convention(step(), "megatron", config=llama())
    with pytest.raises(UsageError, match="sequence"):
        by_convention(step(), "megatron", config=llama(), sequence=0)
