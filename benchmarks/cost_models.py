"""Models whose FLOPs can be worked out by hand, and the hand's result beside each.

A truth is a list of products: 2 x multiply-adds of every matrix product, attention (full) and
convolution of the model, each with the number of its two operands that need a gradient. Forming a
gradient takes as many multiply-adds as the product itself, so `forward` is the sum and `backward`
the sum weighted by those numbers. Nothing here looks at a counter or at an executed operator:
sizes come from the published configurations, arithmetic from the papers.

Everything is built on the meta device, offline, from configurations or from `torch.nn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import transformers as hf
from torch import Tensor, nn

WEIGHT_ONLY, BOTH = 1, 2
"""How many operands need a gradient. The model's own inputs need none."""


@dataclass(frozen=True)
class Product:
    """A matrix product or convolution: FLOPs, and how many of its operands need a gradient."""

    what: str
    flops: int
    gradients: int = BOTH


Products = Iterable[Product]


@dataclass(frozen=True)
class Subject:
    """A model, its inputs and its truth."""

    name: str
    inputs: Mapping[str, tuple[tuple[int, ...], torch.dtype]]
    """In the order of the arguments of `forward`."""
    make: Callable[[], nn.Module]
    products: tuple[Product, ...]
    parameters: int
    dtype: torch.dtype = torch.float32

    @property
    def forward(self) -> int:
        return sum(item.flops for item in self.products)

    @property
    def backward(self) -> int:
        return sum(item.flops * item.gradients for item in self.products)

    @property
    def size(self) -> str:
        """The inputs in words."""
        return " + ".join(" x ".join(map(str, shape)) for shape, _ in self.inputs.values())

    def build(self) -> nn.Module:
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        try:
            with torch.device("meta"):
                return self.make()
        finally:
            torch.set_default_dtype(before)

    def tensors(self) -> dict[str, Tensor]:
        return {
            name: torch.zeros(shape, dtype=dtype, device="meta")
            for name, (shape, dtype) in self.inputs.items()
        }


# The arithmetic.


def linear(what: str, tokens: int, wide_in: int, wide_out: int, gradients: int = BOTH) -> Product:
    return Product(what, 2 * tokens * wide_in * wide_out, gradients)


def attention(
    batch: int, queries: int, keys: int, heads: int, key_size: int, value_size: int
) -> list[Product]:
    pairs = batch * heads * queries * keys
    return [
        Product("queries x keys", 2 * pairs * key_size),
        Product("probabilities x values", 2 * pairs * value_size),
    ]


def convolution(
    what: str, outputs: int, channels: int, window: int, gradients: int = BOTH
) -> Product:
    """Every output meets `window` places of `channels` channels (those of its group)."""
    return Product(what, 2 * outputs * channels * window, gradients)


def times(count: int, products: Products) -> list[Product]:
    return [Product(item.what, item.flops * count, item.gradients) for item in products]


# Language models.


def text(batch: int, tokens: int) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    return {"input_ids": ((batch, tokens), torch.long)}


def grouped_attention(tokens: int, wide: int, heads: int, kv_heads: int, size: int) -> Products:
    """Projections of a sequence, keys and values shared by groups of heads, and the way back."""
    return [
        linear("queries", tokens, wide, heads * size),
        linear("keys, values", tokens, wide, 2 * kv_heads * size),
        *attention(1, tokens, tokens, heads, size, size),
        linear("attention out", tokens, heads * size, wide),
    ]


def gated(what: str, tokens: int, wide: int, inner: int) -> Product:
    """Three matrices: gate, up and down."""
    return Product(what, 3 * 2 * tokens * wide * inner)


def gpt2(tokens: int = 1024, layers: int = 12) -> Subject:
    wide, heads, words = 768, 12, 50257
    layer = [
        linear("queries, keys, values", tokens, wide, 3 * wide),
        *attention(1, tokens, tokens, heads, wide // heads, wide // heads),
        linear("attention out", tokens, wide, wide),
        linear("up, down", tokens, wide, 2 * 4 * wide),
    ]
    return Subject(
        "GPT-2",
        text(1, tokens),
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=layers)),
        (*times(layers, layer), linear("head", tokens, wide, words)),
        words * wide + 1024 * wide + layers * (12 * wide * wide + 13 * wide) + 2 * wide,
    )


def bert(tokens: int = 512, layers: int = 12) -> Subject:
    wide, heads, words = 768, 12, 30522
    layer = [
        linear("queries, keys, values, out", tokens, wide, 4 * wide),
        *attention(1, tokens, tokens, heads, wide // heads, wide // heads),
        linear("up, down", tokens, wide, 2 * 4 * wide),
    ]
    tables = (words + 512 + 2) * wide + 2 * wide
    return Subject(
        "BERT-base",
        text(1, tokens),
        lambda: hf.BertModel(hf.BertConfig(num_hidden_layers=layers)),
        (*times(layers, layer), linear("pooler, of the first token", 1, wide, wide)),
        tables + layers * (12 * wide * wide + 13 * wide) + wide * wide + wide,
    )


def llama(tokens: int = 2048, layers: int = 32) -> Subject:
    wide, heads, kv_heads, size, inner, words = 4096, 32, 8, 128, 14336, 128256
    layer = [
        *grouped_attention(tokens, wide, heads, kv_heads, size),
        gated("feed-forward", tokens, wide, inner),
    ]
    weights = wide * size * (2 * heads + 2 * kv_heads) + 3 * wide * inner + 2 * wide
    return Subject(
        "Llama-3-8B",
        text(1, tokens),
        lambda: hf.LlamaForCausalLM(
            hf.LlamaConfig(
                hidden_size=wide, intermediate_size=inner, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv_heads, vocab_size=words,
                max_position_embeddings=8192, rope_theta=500000.0,
            )
        ),
        (*times(layers, layer), linear("head", tokens, wide, words)),
        2 * words * wide + layers * weights + wide,
        torch.bfloat16,
    )  # fmt: skip


def mixtral(tokens: int = 2048, layers: int = 32) -> Subject:
    wide, heads, kv_heads, size, inner, words = 4096, 32, 8, 128, 14336, 32000
    experts, active = 8, 2
    layer = [
        *grouped_attention(tokens, wide, heads, kv_heads, size),
        linear("router", tokens, wide, experts),
        gated("active experts", active * tokens, wide, inner),
    ]
    weights = wide * size * (2 * heads + 2 * kv_heads) + 2 * wide
    weights += experts * (wide + 3 * wide * inner)
    return Subject(
        "Mixtral-8x7B",
        text(1, tokens),
        lambda: hf.MixtralForCausalLM(hf.MixtralConfig(num_hidden_layers=layers)),
        (*times(layers, layer), linear("head", tokens, wide, words)),
        2 * words * wide + layers * weights + wide,
        torch.bfloat16,
    )


def qwen3_moe(tokens: int = 2048, layers: int = 48) -> Subject:
    wide, heads, kv_heads, size, inner, words = 2048, 32, 4, 128, 768, 151936
    experts, active = 128, 8
    layer = [
        *grouped_attention(tokens, wide, heads, kv_heads, size),
        linear("router", tokens, wide, experts),
        gated("active experts", active * tokens, wide, inner),
    ]
    weights = wide * size * (2 * heads + 2 * kv_heads) + 2 * wide + 2 * size
    weights += experts * (wide + 3 * wide * inner)
    return Subject(
        "Qwen3-30B-A3B",
        text(1, tokens),
        lambda: hf.Qwen3MoeForCausalLM(
            hf.Qwen3MoeConfig(
                hidden_size=wide, intermediate_size=6144, moe_intermediate_size=inner,
                num_experts=experts, num_experts_per_tok=active, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=size,
                vocab_size=words,
            )
        ),
        (*times(layers, layer), linear("head", tokens, wide, words)),
        2 * words * wide + layers * weights + wide,
        torch.bfloat16,
    )  # fmt: skip


def deepseek_v3(tokens: int = 2048, layers: int = 61) -> Subject:
    wide, heads, words = 7168, 128, 129280
    query_rank, kv_rank, plain, rotary, value = 1536, 512, 128, 64, 128
    dense, inner, expert_inner, experts, active, shared = 3, 18432, 2048, 256, 8, 1
    latent = [
        linear("queries down", tokens, wide, query_rank),
        linear("queries up", tokens, query_rank, heads * (plain + rotary)),
        linear("latent and rotary keys down", tokens, wide, kv_rank + rotary),
        linear("keys, values up", tokens, kv_rank, heads * (plain + value)),
        *attention(1, tokens, tokens, heads, plain + rotary, value),
        linear("attention out", tokens, heads * value, wide),
    ]
    mixture = [
        linear("router", tokens, wide, experts),
        gated("active and shared experts", (active + shared) * tokens, wide, expert_inner),
    ]
    sparse = layers - dense
    weights = wide * query_rank + query_rank * heads * (plain + rotary) + query_rank
    weights += wide * (kv_rank + rotary) + kv_rank * heads * (plain + value) + kv_rank
    weights += heads * value * wide + 2 * wide
    mixture_weights = experts * wide + (experts + shared) * 3 * wide * expert_inner
    return Subject(
        "DeepSeek-V3",
        text(1, tokens),
        lambda: hf.DeepseekV3ForCausalLM(hf.DeepseekV3Config(num_hidden_layers=layers)),
        (
            *times(layers, latent),
            *times(dense, [gated("feed-forward", tokens, wide, inner)]),
            *times(sparse, mixture),
            linear("head", tokens, wide, words),
        ),
        2 * words * wide + wide + layers * weights + dense * 3 * wide * inner
        + sparse * mixture_weights,
        torch.bfloat16,
    )  # fmt: skip


# Vision and speech.


def image(size: int, batch: int = 1) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    return {"pixel_values": ((batch, 3, size, size), torch.float32)}


def patches(count: int, wide: int, side: int) -> Product:
    return convolution("patches", count * wide, 3, side * side, WEIGHT_ONLY)


def vision_layer(tokens: int, wide: int, heads: int) -> Products:
    return [
        linear("queries, keys, values, out", tokens, wide, 4 * wide),
        *attention(1, tokens, tokens, heads, wide // heads, wide // heads),
        linear("up, down", tokens, wide, 2 * 4 * wide),
    ]


def vit(layers: int = 12) -> Subject:
    wide, heads, side, count, classes = 768, 12, 16, 14 * 14, 1000
    return Subject(
        "ViT-B/16",
        image(224),
        lambda: hf.ViTForImageClassification(
            hf.ViTConfig(num_hidden_layers=layers, num_labels=classes)
        ),
        (
            patches(count, wide, side),
            *times(layers, vision_layer(count + 1, wide, heads)),
            linear("classes, of the first token", 1, wide, classes),
        ),
        3 * side**2 * wide + wide + wide + (count + 1) * wide
        + layers * (12 * wide * wide + 13 * wide) + 2 * wide + wide * classes + classes,
    )  # fmt: skip


def clip(layers: int = 24) -> Subject:
    wide, heads, side, count = 1024, 16, 14, 16 * 16
    return Subject(
        "CLIP-L/14 vision",
        image(224),
        lambda: hf.CLIPVisionModel(
            hf.CLIPVisionConfig(
                hidden_size=wide, intermediate_size=4 * wide, num_hidden_layers=layers,
                num_attention_heads=heads, patch_size=side, projection_dim=768,
            )
        ),
        (patches(count, wide, side), *times(layers, vision_layer(count + 1, wide, heads))),
        3 * side**2 * wide + wide + (count + 1) * wide
        + layers * (12 * wide * wide + 13 * wide) + 4 * wide,
    )  # fmt: skip


def sam() -> Subject:
    """Eight layers look through windows of 14 x 14 (the grid of 64 x 64 is padded to 70 x 70),
    four over the whole grid; positions enter as products of the queries with a table per axis."""
    wide, heads, grid, window, out = 768, 12, 64, 14, 256
    size = wide // heads

    def layer(areas: int, side: int) -> Products:
        tokens = areas * side * side
        return [
            linear("queries, keys, values, out", tokens, wide, 4 * wide),
            *attention(areas, side * side, side * side, heads, size, size),
            Product("queries x row and column tables", 2 * 2 * tokens * heads * side * size),
            linear("up, down", grid * grid, wide, 2 * 4 * wide),
        ]

    def table(side: int) -> int:
        return 2 * (2 * side - 1) * size

    return Subject(
        "SAM ViT-B",
        image(1024),
        lambda: hf.SamVisionModel(hf.SamVisionConfig()),
        (
            patches(grid * grid, wide, 16),
            *times(8, layer(5 * 5, window)),
            *times(4, layer(1, grid)),
            convolution("neck, 1 x 1", grid * grid * out, wide, 1),
            convolution("neck, 3 x 3", grid * grid * out, out, 9),
        ),
        3 * 16**2 * wide + wide + grid * grid * wide + 12 * (12 * wide * wide + 13 * wide)
        + 8 * table(window) + 4 * table(grid) + wide * out + 9 * out * out + 4 * out,
    )  # fmt: skip


def whisper(layers: int = 12, tokens: int = 448) -> Subject:
    wide, heads, words, mels, frames, heard = 768, 12, 51865, 80, 3000, 1500
    size = wide // heads
    encoder = vision_layer(heard, wide, heads)
    decoder = [
        linear("queries, keys, values, out", tokens, wide, 4 * wide),
        *attention(1, tokens, tokens, heads, size, size),
        linear("queries, out, of what was heard", tokens, wide, 2 * wide),
        linear("keys, values, of what was heard", heard, wide, 2 * wide),
        *attention(1, tokens, heard, heads, size, size),
        linear("up, down", tokens, wide, 2 * 4 * wide),
    ]
    square = wide * wide
    # the projection of keys has no bias
    in_encoder = 12 * square + 12 * wide
    in_decoder = 16 * square + 17 * wide
    return Subject(
        "Whisper-small",
        {
            "input_features": ((1, mels, frames), torch.float32),
            "decoder_input_ids": ((1, tokens), torch.long),
        },
        lambda: hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(
                d_model=wide, encoder_layers=layers, decoder_layers=layers,
                encoder_attention_heads=heads, decoder_attention_heads=heads,
                encoder_ffn_dim=4 * wide, decoder_ffn_dim=4 * wide, vocab_size=words,
            )
        ),
        (
            convolution("first convolution", frames * wide, mels, 3, WEIGHT_ONLY),
            convolution("second convolution", heard * wide, wide, 3),
            *times(layers, encoder),
            *times(layers, decoder),
            linear("head", tokens, wide, words),
        ),
        3 * mels * wide + wide + 3 * square + wide + heard * wide + layers * in_encoder + 2 * wide
        + words * wide + 448 * wide + layers * in_decoder + 2 * wide,
    )  # fmt: skip


def resnet50() -> Subject:
    found = [convolution("stem", 112 * 112 * 64, 3, 49, WEIGHT_ONLY)]
    weights = 3 * 49 * 64 + 2 * 64
    wide_in = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        side, inner = 56 >> stage, 64 << stage
        wide_out = 4 * inner
        for block in range(depth):
            before = 2 * side if stage and not block else side  # the 3 x 3 has the stride
            found += [
                convolution("1 x 1 in", before**2 * inner, wide_in, 1),
                convolution("3 x 3", side**2 * inner, inner, 9),
                convolution("1 x 1 out", side**2 * wide_out, inner, 1),
            ]
            weights += wide_in * inner + 9 * inner * inner + inner * wide_out
            weights += 2 * (2 * inner + wide_out)
            if not block:
                found.append(convolution("shortcut", side**2 * wide_out, wide_in, 1))
                weights += wide_in * wide_out + 2 * wide_out
            wide_in = wide_out
    return Subject(
        "ResNet-50",
        image(224),
        lambda: hf.ResNetForImageClassification(hf.ResNetConfig(num_labels=1000)),
        (*found, linear("classes", 1, 2048, 1000)),
        weights + 2048 * 1000 + 1000,
    )


def swin() -> Subject:
    found = [patches(56 * 56, 96, 4)]
    weights = 3 * 16 * 96 + 96 + 2 * 96
    for stage, depth in enumerate((2, 2, 6, 2)):
        tokens, wide, heads = 56 * 56 >> 2 * stage, 96 << stage, 3 << stage
        layer = [
            linear("queries, keys, values, out", tokens, wide, 4 * wide),
            *attention(tokens // 49, 49, 49, heads, 32, 32),
            linear("up, down", tokens, wide, 2 * 4 * wide),
        ]
        found += times(depth, layer)
        weights += depth * (12 * wide * wide + 13 * wide + 13 * 13 * heads)
        if stage < 3:
            found.append(linear("merging", tokens // 4, 4 * wide, 2 * wide))
            weights += 8 * wide * wide + 2 * 4 * wide
    return Subject(
        "Swin-T",
        image(224),
        lambda: hf.SwinForImageClassification(hf.SwinConfig(num_labels=1000)),
        (*found, linear("classes", 1, 768, 1000)),
        weights + 2 * 768 + 768 * 1000 + 1000,
    )


def mobilenet() -> Subject:
    """Depthwise 3 x 3 and then 1 x 1, thirteen times."""
    found = [convolution("stem", 112 * 112 * 32, 3, 9, WEIGHT_ONLY)]
    weights = 3 * 9 * 32 + 2 * 32
    side, wide = 112, 32
    for stride, wide_out in (
        (1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512),
        *((1, 512),) * 5, (2, 1024), (1, 1024),
    ):  # fmt: skip
        side //= stride
        found += [
            convolution("depthwise", side**2 * wide, 1, 9),
            convolution("1 x 1", side**2 * wide_out, wide, 1),
        ]
        weights += 9 * wide + 2 * wide + wide * wide_out + 2 * wide_out
        wide = wide_out
    return Subject(
        "MobileNetV1 (depthwise)",
        image(224),
        lambda: hf.MobileNetV1ForImageClassification(hf.MobileNetV1Config(num_labels=1000)),
        (*found, linear("classes", 1, 1024, 1000)),
        weights + 1024 * 1000 + 1000,
    )


# Plain torch.


class Tagger(nn.Module):
    """A two-layer LSTM with a head on every step."""

    def __init__(self, wide_in: int, wide: int, classes: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(wide_in, wide, num_layers=2, batch_first=True)
        self.head = nn.Linear(wide, classes)

    def forward(self, features: Tensor) -> Tensor:
        states, _ = self.recurrent(features)
        return self.head(states)  # type: ignore[no-any-return]


def lstm(batch: int = 16, steps: int = 128) -> Subject:
    wide_in, wide, classes = 256, 512, 1000
    rows = batch * steps

    def recurrence() -> Products:
        """The state before the first step is given, so it needs no gradient."""
        return [
            linear("state, first step", batch, wide, 4 * wide, WEIGHT_ONLY),
            linear("state, other steps", rows - batch, wide, 4 * wide),
        ]

    return Subject(
        "LSTM",
        {"features": ((batch, steps, wide_in), torch.float32)},
        lambda: Tagger(wide_in, wide, classes),
        (
            linear("inputs of layer 1", rows, wide_in, 4 * wide, WEIGHT_ONLY),
            *recurrence(),
            linear("inputs of layer 2", rows, wide, 4 * wide),
            *recurrence(),
            linear("head", rows, wide, classes),
        ),
        4 * wide * (wide_in + wide + 2) + 4 * wide * (2 * wide + 2) + wide * classes + classes,
    )


class EinsumAttention(nn.Module):
    """Attention written with nothing but einsum."""

    def __init__(self, wide: int, heads: int, size: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (
            nn.Parameter(torch.empty(wide, heads, size)) for _ in range(3)
        )
        self.out = nn.Parameter(torch.empty(heads, size, wide))

    def forward(self, x_BSD: Tensor) -> Tensor:  # noqa: N803  the shape is in the name
        query, key, value = (
            torch.einsum("bsd,dhk->bshk", x_BSD, w) for w in (self.query, self.key, self.value)
        )
        scores = torch.einsum("bqhk,bmhk->bhqm", query, key).softmax(-1)
        mixed = torch.einsum("bhqm,bmhk->bqhk", scores, value)
        return torch.einsum("bqhk,hkd->bqd", mixed, self.out)


def einsum(batch: int = 4, tokens: int = 256) -> Subject:
    wide, heads, size = 512, 8, 64
    rows = batch * tokens
    return Subject(
        "einsum",
        {"x_BSD": ((batch, tokens, wide), torch.float32)},
        lambda: EinsumAttention(wide, heads, size),
        (
            linear("queries, keys, values", rows, wide, 3 * heads * size, WEIGHT_ONLY),
            *attention(batch, tokens, tokens, heads, size, size),
            linear("attention out", rows, heads * size, wide),
        ),
        4 * wide * heads * size,
    )


DCGAN_CHANNELS = (100, 512, 256, 128, 64, 3)


def generator() -> nn.Module:
    """The generator of DCGAN for images of 64 x 64."""
    layers: list[nn.Module] = []
    for index, (wide_in, wide_out) in enumerate(pairwise(DCGAN_CHANNELS)):
        stride, padding = (2, 1) if index else (1, 0)
        layers.append(nn.ConvTranspose2d(wide_in, wide_out, 4, stride, padding, bias=False))
        layers += [nn.BatchNorm2d(wide_out), nn.ReLU()] if index < 4 else [nn.Tanh()]
    return nn.Sequential(*layers)


def dcgan(batch: int = 64) -> Subject:
    """Every input of a transposed convolution meets 4 x 4 places of every output channel."""
    found, weights = [], 0
    for index, (wide_in, wide_out) in enumerate(pairwise(DCGAN_CHANNELS)):
        side = 1 if index == 0 else 2 << index
        gradients = BOTH if index else WEIGHT_ONLY
        inputs = batch * wide_in * side * side
        found.append(Product("transposed convolution", 2 * inputs * wide_out * 16, gradients))
        weights += 16 * wide_in * wide_out + (2 * wide_out if index < 4 else 0)
    return Subject(
        "DCGAN (transposed)",
        {"input": ((batch, 100, 1, 1), torch.float32)},
        generator,
        tuple(found),
        weights,
    )


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "gpt2": gpt2,
    "bert": bert,
    "llama3_8b": llama,
    "mixtral_8x7b": mixtral,
    "qwen3_30b_a3b": qwen3_moe,
    "deepseek_v3": deepseek_v3,
    "vit_b_16": vit,
    "clip_l_14": clip,
    "sam_vit_b": sam,
    "whisper_small": whisper,
    "resnet50": resnet50,
    "swin_t": swin,
    "lstm": lstm,
    "einsum": einsum,
    "dcgan": dcgan,
    "mobilenet_v1": mobilenet,
}


def plain_output(output: Any) -> Tensor:
    """The tensor that a model is asked for: what it returns, its logits, or its last states."""
    if isinstance(output, Tensor):
        return output
    logits = getattr(output, "logits", None)
    return logits if logits is not None else output[0]  # type: ignore[no-any-return]
