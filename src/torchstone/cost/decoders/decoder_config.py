"""A configuration as transformers writes it, read into the sizes of a decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.cost.decoders.decoder_parts import Experts, Grouped, Latent

FAMILIES = (
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "qwen2_moe",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_ocr2_text",
)
"""Model types whose closed forms equal the count of the transformers model to the last digit."""
_QUERY_KEY_NORM = ("qwen3", "qwen3_moe")


class Sizes(NamedTuple):
    """What a configuration says of a decoder."""

    hidden: int
    layers: int
    vocabulary: int
    width: int
    attention: Grouped | Latent
    experts: Experts | None
    sparse_layers: int
    tied: bool
    bias: bool
    window: int
    windowed_layers: int


def read_sizes(config: object) -> Sizes:
    """The sizes in a configuration object or mapping; that of the text part if there are several."""
    read = _Reader(_text_part(config))
    family = read.optional("model_type")
    if family is not None and family not in FAMILIES:
        raise unknown("config model_type", str(family), list(FAMILIES))
    layers = read.whole("num_hidden_layers")
    experts = _experts(read)
    sparse = _sparse_layers(read, layers) if experts else 0
    return Sizes(
        hidden=read.whole("hidden_size"),
        layers=layers,
        vocabulary=read.whole("vocab_size"),
        width=read.whole("intermediate_size") if sparse < layers else 0,
        attention=_attention(read, str(family)),
        experts=experts,
        sparse_layers=sparse,
        tied=bool(read.optional("tie_word_embeddings", default=False)),
        bias=bool(read.optional("mlp_bias", default=False)),
        window=read.whole("sliding_window") if read.optional("sliding_window") else 0,
        windowed_layers=_windowed_layers(read, layers),
    )


def _text_part(config: object) -> object:
    inner = _Reader(config).optional("text_config")
    return config if inner is None else inner


class _Reader:
    """Values of a configuration by any of their names."""

    def __init__(self, config: object) -> None:
        self._config = config

    def optional(self, *names: str, default: Any = None) -> Any:
        for name in names:
            if isinstance(self._config, Mapping):
                value = self._config.get(name)
            else:
                value = getattr(self._config, name, None)
            if value is not None:
                return value
        return default

    def whole(self, *names: str, least: int = 1) -> int:
        value = self.optional(*names)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            given = "nothing" if value is None else repr(value)
            raise UsageError(
                f"config {names[0]}",
                given,
                Text(f"a whole number of at least {least}", f"不小于 {least} 的整数"),
                Text(
                    "pass the configuration of a decoder, such as transformers.LlamaConfig()",
                    "请传入解码器的配置，例如 transformers.LlamaConfig()",
                ),
            )
        return value


def _attention(read: _Reader, family: str) -> Grouped | Latent:
    heads = read.whole("num_attention_heads")
    bias = bool(read.optional("attention_bias", default=False))
    if read.optional("kv_lora_rank"):
        return Latent(
            heads=heads,
            query_rank=read.whole("q_lora_rank") if read.optional("q_lora_rank") else 0,
            kv_rank=read.whole("kv_lora_rank"),
            nope_dim=read.whole("qk_nope_head_dim"),
            rope_dim=read.whole("qk_rope_head_dim"),
            value_dim=read.whole("v_head_dim"),
            bias=bias,
        )
    kv_heads = read.whole("num_key_value_heads", "num_attention_heads")
    if heads % kv_heads:
        raise UsageError(
            "config num_key_value_heads",
            str(kv_heads),
            Text(f"a divisor of {heads} heads", f"{heads} 个注意力头的约数"),
            Text("check the configuration", "请检查配置"),
        )
    own = read.optional("head_dim")
    query_bias = family == "qwen2" or bool(read.optional("qkv_bias", default=False))
    return Grouped(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=read.whole("head_dim") if own else read.whole("hidden_size") // heads,
        bias_in=bias or query_bias,
        bias_out=bias and not query_bias,
        qk_norm=family in _QUERY_KEY_NORM,
    )


def _experts(read: _Reader) -> Experts | None:
    if not read.optional("num_local_experts", "n_routed_experts", "num_experts"):
        return None
    routed = read.whole("num_local_experts", "n_routed_experts", "num_experts")
    width = read.whole("moe_intermediate_size", "intermediate_size")
    active = read.whole("num_experts_per_tok")
    if active > routed:
        raise UsageError(
            "config num_experts_per_tok",
            str(active),
            Text(f"at most the {routed} experts", f"不超过 {routed} 个专家"),
            Text("check the configuration", "请检查配置"),
        )
    own_shared = read.optional("shared_expert_intermediate_size")
    shared = own_shared or width * int(read.optional("n_shared_experts", default=0))
    return Experts(
        routed=routed,
        active=active,
        width=width,
        shared_width=shared,
        shared_gate=own_shared is not None,
        shared_bias=bool(read.optional("mlp_bias", default=False)),
    )


def _sparse_layers(read: _Reader, layers: int) -> int:
    """How many layers have experts: by name, from one layer on, or every so many."""
    kinds = read.optional("mlp_layer_types")
    if kinds is not None:
        return sum(kind == "sparse" for kind in kinds)
    first = read.optional("first_k_dense_replace")
    if first is not None:
        return max(layers - int(first), 0)
    step = int(read.optional("decoder_sparse_step", default=1))
    dense = set(read.optional("mlp_only_layers", default=()))
    return sum(index not in dense and (index + 1) % step == 0 for index in range(layers))


def _windowed_layers(read: _Reader, layers: int) -> int:
    """How many layers look back over a window only."""
    if not read.optional("sliding_window"):
        return 0
    kinds = read.optional("layer_types")
    return layers if kinds is None else sum(kind == "sliding_attention" for kind in kinds)
