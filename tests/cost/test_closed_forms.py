"""Closed forms against a count of the transformers models, to the last digit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from torchstone.core.errors import UsageError
from torchstone.cost.decoders.closed_forms import Decoder, cache_growth
from torchstone.cost.decoders.decoder_config import FAMILIES
from torchstone.cost.decoders.decoder_parts import Experts, Grouped, Latent

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
}
MIXTURE = SMALL | {"moe_intermediate_size": 48, "num_experts_per_tok": 2}
LATENT = MIXTURE | {
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 12,
}


def small() -> dict[str, tuple[Any, Any]]:
    t = transformers
    return {
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(**SMALL)),
        "llama with biases": (
            t.LlamaForCausalLM,
            t.LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True),
        ),
        "mistral": (t.MistralForCausalLM, t.MistralConfig(**SMALL, head_dim=8, sliding_window=20)),
        "mixtral": (t.MixtralForCausalLM, t.MixtralConfig(**SMALL)),
        "qwen2 tied": (t.Qwen2ForCausalLM, t.Qwen2Config(**SMALL, tie_word_embeddings=True)),
        "qwen2 windows": (
            t.Qwen2ForCausalLM,
            t.Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=16, max_window_layers=1),
        ),
        "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config(**SMALL, head_dim=32)),
        "qwen2_moe": (
            t.Qwen2MoeForCausalLM,
            t.Qwen2MoeConfig(
                **MIXTURE, num_experts=6, shared_expert_intermediate_size=88, decoder_sparse_step=2
            ),
        ),
        "qwen3_moe": (
            t.Qwen3MoeForCausalLM,
            t.Qwen3MoeConfig(**MIXTURE, num_experts=8, head_dim=32, mlp_only_layers=[1]),
        ),
        "deepseek_v2": (
            t.DeepseekV2ForCausalLM,
            t.DeepseekV2Config(**LATENT, q_lora_rank=None, attention_bias=True),
        ),
        "deepseek_v3": (
            t.DeepseekV3ForCausalLM,
            t.DeepseekV3Config(**LATENT, q_lora_rank=24, n_group=2, topk_group=1),
        ),
    }


def full() -> dict[str, tuple[Any, Any, int]]:
    """Published configurations and how many parameters they have."""
    t = transformers
    llama = t.LlamaConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
    )
    qwen = t.Qwen3MoeConfig(
        hidden_size=2048,
        intermediate_size=6144,
        moe_intermediate_size=768,
        num_experts=128,
        num_experts_per_tok=8,
        num_hidden_layers=48,
        num_attention_heads=32,
        num_key_value_heads=4,
        head_dim=128,
        vocab_size=151936,
    )
    return {
        "Llama-3-8B": (t.LlamaForCausalLM, llama, 8_030_261_248),
        "Mixtral-8x7B": (t.MixtralForCausalLM, t.MixtralConfig(), 46_702_792_704),
        "Qwen3-30B-A3B": (t.Qwen3MoeForCausalLM, qwen, 30_532_122_624),
        "DeepSeek-V3": (t.DeepseekV3ForCausalLM, t.DeepseekV3Config(), 671_026_404_352),
    }


def built(cls: Any, config: Any) -> Any:
    config._experts_implementation = "batched_mm"  # the one that torch's counter sees
    with torch.device("meta"):
        return cls(config)


def counted(model: Any, batch: int, new: int, cached: int, logits: str) -> int:
    past = None
    with torch.no_grad():
        if cached:
            known = torch.zeros(batch, cached, dtype=torch.long, device="meta")
            past = model(known, use_cache=True, logits_to_keep=1).past_key_values
        counter = FlopCounterMode(display=False)
        with counter:
            model(
                torch.zeros(batch, new, dtype=torch.long, device="meta"),
                past_key_values=past,
                use_cache=True,
                logits_to_keep=1 if logits == "last" else 0,
            )
    return counter.get_total_flops()


@pytest.mark.parametrize("name", list(small()))
def test_small_models(name: str) -> None:
    cls, config = small()[name]
    model, decoder = built(cls, config), Decoder.from_config(config)
    assert decoder.parameters == sum(item.numel() for item in model.parameters())
    for batch, new, cached, logits in (
        (1, 32, 0, "last"),
        (3, 8, 24, "all"),
        (2, 1, 40, "last"),
    ):
        expected = counted(model, batch, new, cached, logits)
        assert decoder.prefill(batch, new, cached, logits).flops == expected
    assert decoder.decode(2, 40).flops == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", list(full()))
def test_full_models(name: str) -> None:
    cls, config, parameters = full()[name]
    model, decoder = built(cls, config), Decoder.from_config(config)
    assert decoder.parameters == parameters
    assert sum(item.numel() for item in model.parameters()) == parameters
    assert decoder.prefill(1, 1024).flops == counted(model, 1, 1024, 0, "last")
    assert decoder.decode(8, 4096).flops == counted(model, 8, 1, 4096, "last")


def test_every_family_is_tested() -> None:
    tested = {config.model_type for _, config in small().values()}
    assert set(FAMILIES) - tested == {"deepseek_ocr2_text"}


def test_the_language_part_of_an_ocr_model() -> None:
    # sizes of DeepSeek-OCR: 2,603,776,000 parameters in its twelve layers
    config = {
        "model_type": "deepseek_ocr2",
        "text_config": {
            "model_type": "deepseek_ocr2_text",
            "hidden_size": 1280,
            "intermediate_size": 6848,
            "moe_intermediate_size": 896,
            "num_hidden_layers": 12,
            "num_attention_heads": 10,
            "num_key_value_heads": 10,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "vocab_size": 129280,
            "mlp_layer_types": ["dense"] + 11 * ["sparse"],
        },
    }
    decoder = Decoder.from_config(config)
    tables = 2 * 129280 * 1280
    assert decoder.parameters - tables - 1280 == 2_603_776_000
    s, d = 1024, 1280
    layers = 12 * (8 * s * d * d + 4 * s * s * d) + 6 * s * d * 6848
    experts = 11 * (2 * s * d * 64 + 6 * s * d * 896 * 8)
    assert decoder.prefill(1, s, logits="all").flops == layers + experts + 2 * s * d * 129280


def test_deepseek_v3_by_hand() -> None:
    decoder = Decoder.from_config(transformers.DeepseekV3Config())
    assert decoder.active_parameters == 671_026_404_352 - 58 * 248 * 3 * 7168 * 2048
    assert decoder.cache_bytes_per_token("code") == 61 * (512 + 64) * 2 == 70_272
    assert decoder.cache_bytes_per_token("expanded") == 61 * 128 * (192 + 128) * 2 == 4_997_120
    assert decoder.cache_bytes(4, 1000, "absorbed") == 4 * 1000 * 70_272


@pytest.mark.parametrize(("context", "times"), [(1024, 24.0), (4096, 59.3), (32768, 106.8)])
def test_expanding_the_latent_at_every_step_is_dear(context: int, times: float) -> None:
    decoder = Decoder.from_config(transformers.DeepseekV3Config())
    code, absorbed = decoder.decode(1, context), decoder.decode(1, context, "absorbed")
    assert code.flops / absorbed.flops == pytest.approx(times, abs=0.1)


def test_forms_of_latent_attention_by_hand() -> None:
    part = Latent(heads=2, query_rank=3, kv_rank=4, nope_dim=5, rope_dim=6, value_dim=7)
    tokens, batch, new, context, hidden = 6, 2, 3, 10, 8
    common = 2 * tokens * (8 * 3 + 3 * 2 * 11 + 8 * 10 + 2 * 7 * 8)
    expand = 4 * 2 * (5 + 7)
    assert part.projections(hidden, batch, new, context, "expanded") == common + 2 * tokens * expand
    assert part.projections(hidden, batch, new, context, "absorbed") == common + 2 * tokens * expand
    assert part.projections(hidden, batch, new, context, "code") == common + 2 * 20 * expand
    assert part.scores(batch, new, context, "expanded") == 2 * 2 * 3 * 10 * 2 * (11 + 7)
    assert part.scores(batch, new, context, "code") == 2 * 2 * 3 * 10 * 2 * (11 + 7)
    assert part.scores(batch, new, context, "absorbed") == 2 * 2 * 3 * 10 * 2 * (4 + 6 + 4)


def test_the_absorbed_form_is_the_cheaper_one_for_one_token_only() -> None:
    decoder = Decoder.from_config(transformers.DeepseekV3Config())
    assert decoder.decode(1, 8192, "absorbed").flops < decoder.decode(1, 8192, "code").flops
    assert decoder.prefill(1, 8192, form="absorbed").flops > decoder.prefill(1, 8192).flops


def test_weights_that_a_decode_step_reads() -> None:
    llama = Decoder.from_config(full()["Llama-3-8B"][1])
    assert llama.weight_bytes_read(1) == 2 * (8_030_261_248 - 128256 * 4096 + 4096)
    mixtral = Decoder.from_config(transformers.MixtralConfig())
    expert = 3 * 4096 * 14336
    without = mixtral.parameters - 32000 * 4096 - 32 * 8 * expert
    assert mixtral.weight_bytes_read(1) == 2 * (without + 4096 + 32 * 2 * expert)
    assert mixtral.weight_bytes_read(3) == 2 * (without + 3 * 4096 + 32 * 6 * expert)
    assert mixtral.weight_bytes_read(64) == 2 * (without + 64 * 4096 + 32 * 8 * expert)
    tied = Decoder(8, 1, 100, 16, Grouped(2, 2, 4), tied=True)
    assert tied.weight_bytes_read(1, itemsize=1) == tied.parameters


def test_the_cache_of_a_window_stops_growing() -> None:
    decoder = Decoder(8, 3, 10, 16, Grouped(2, 1, 4), window=100, windowed_layers=2)
    per_layer = 2 * 4 * 2
    assert decoder.cache_bytes(1, 50) == 3 * 50 * per_layer
    assert decoder.cache_bytes(1, 1000) == (1000 + 2 * 99) * per_layer


def test_the_growth_of_the_cache_as_a_picture() -> None:
    llama = Decoder.from_config(full()["Llama-3-8B"][1])
    plot = cache_growth(llama, (1024, 8192), batch=2)
    assert len(plot.series) == 1
    assert plot.series[0].y == (2 * 1024 * 131_072.0, 2 * 8192 * 131_072.0)
    latent = cache_growth(Decoder.from_config(transformers.DeepseekV3Config()), (1, 2))
    assert [series.y[0] for series in latent.series] == [70_272.0, 4_997_120.0]


def test_experts_by_hand() -> None:
    part = Experts(routed=8, active=2, width=16, shared_width=32, shared_gate=True)
    assert part.parameters(4) == 4 * 8 + 8 * 3 * 4 * 16 + 3 * 4 * 32 + 4
    assert part.router(4, 10) == 2 * 10 * 4 * 9
    assert part.work(4, 10) == 6 * 10 * 4 * 16 * 2
    assert part.shared(4, 10) == 6 * 10 * 4 * 32
    assert [part.hit(tokens) for tokens in (1, 3, 4, 100)] == [2, 6, 8, 8]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "lama"}, "did you mean 'llama'"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_hidden_layers": 0}, "at least 1"),
        ({"vocab_size": "many"}, "vocab_size"),
        ({"num_key_value_heads": 3}, "divisor of 4"),
        ({"num_local_experts": 2, "num_experts_per_tok": 3}, "at most the 2 experts"),
    ],
)
def test_configurations_that_cannot_be(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Decoder.from_config(SMALL | change)


def test_a_mapping_without_a_model_type_will_do() -> None:
    assert Decoder.from_config(SMALL) == Decoder.from_config(transformers.LlamaConfig(**SMALL))


def test_arguments_that_cannot_be() -> None:
    decoder = Decoder.from_config(SMALL)
    for call in (
        lambda: decoder.prefill(0, 1),
        lambda: decoder.prefill(1, 0),
        lambda: decoder.prefill(1, 1, -1),
        lambda: decoder.prefill(1, 1, logits="first"),
        lambda: decoder.prefill(1, 1, form="folded"),
        lambda: decoder.decode(1, 1.5),  # type: ignore[arg-type]
        lambda: decoder.cache_bytes(1, -1),
        lambda: decoder.cache_bytes_per_token(itemsize=0),
        lambda: decoder.weight_bytes_read(True, 0),
    ):
        with pytest.raises(UsageError):
            call()
