"""One piece of work, counted by the rules of other tools: the same model, another number.

`mac`, `flop` and `fvcore` are read off a cost. `palm` and `megatron` are closed forms over the
sizes of a decoder: they need its configuration and the tokens of the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.arguments import choice, cost_of, whole
from torchstone.cost.counters import counters
from torchstone.cost.decoders.closed_forms import Decoder
from torchstone.cost.records.ledger import BACKWARD, FORWARD, Cost

MAC, FLOP, FVCORE, PALM, MEGATRON = "mac", "flop", "fvcore", "palm", "megatron"
CONVENTIONS = (MAC, FLOP, FVCORE, PALM, MEGATRON)
FULL, CAUSAL = "full", "causal"
ATTENTIONS = (FULL, CAUSAL)

RULES = {
    MAC: Text(
        "multiply-adds of matrix products, attention and convolutions, forward and backward",
        "矩阵乘法、注意力与卷积的乘加次数，前向与反向",
    ),
    FLOP: Text(
        "2 x multiply-adds of matrix products, attention and convolutions, forward and backward",
        "矩阵乘法、注意力与卷积的乘加次数 x 2，前向与反向",
    ),
    FVCORE: Text(
        "multiply-adds of the forward pass without fused attention, routed experts, recurrent and "
        "quantised operators, which fvcore has no counter for (it adds a few operations for each "
        "element of a norm, left out here)",
        "前向的乘加次数，不含 fvcore 没有计数器的融合注意力、路由专家、循环与量化算子"
        "（它还按归一化的元素数加上少许运算，此处略去）",
    ),
    PALM: Text(
        "(6N + 12 L H Q T) x tokens: N active parameters with the embedding, L layers, H heads of "
        "Q numbers, T tokens a sequence; a third of it without a backward pass",
        "(6N + 12 L H Q T) x token数：N 为含嵌入的激活参数，L 层，H 个维度为 Q 的头，序列长 T；"
        "没有反向时取三分之一",
    ),
    MEGATRON: Text(
        "3 x forward of projections, half of attention (causal), active and shared experts and "
        "the head on every token, without the router; a third of it without a backward pass",
        "3 x 前向：投影、一半的注意力（因果）、激活与共享专家、全部token的输出头，不含路由器；"
        "没有反向时取三分之一",
    ),
}
_OWN_ATTENTION = {MEGATRON: CAUSAL}


@dataclass(frozen=True, slots=True)
class Figure:
    """A count by one convention."""

    convention: str
    value: int
    unit: str
    """FLOP or MAC."""
    attention: str
    """`full`, or `causal` where what the mask makes needless is left out."""
    rule: Text


def by_convention(
    source: object,
    convention: str = FLOP,
    *,
    attention: str | None = None,
    config: object = None,
    batch: int = 1,
    sequence: int | None = None,
) -> Figure:
    """What a cost (or a report with a `cost`) is by a convention.

    `attention` is that of the convention unless given: causal for megatron, full for the others.
    palm and megatron need `config` (a transformers configuration or a `Decoder`) and `sequence`.
    """
    cost = cost_of(source)
    choice("convention", convention, CONVENTIONS)
    mode = attention or _OWN_ATTENTION.get(convention, FULL)
    choice("attention", mode, ATTENTIONS)
    if convention in (PALM, MEGATRON):
        decoder, tokens = _decoder(convention, config), _tokens(convention, sequence)
        times = 3 if cost.total(BACKWARD).flops else 1
        form = palm_flops if convention == PALM else megatron_flops
        value = times * form(decoder, whole("batch", batch), tokens, causal=mode == CAUSAL)
    else:
        value = _counted(cost, convention, causal=mode == CAUSAL)
    unit = "MAC" if convention in (MAC, FVCORE) else "FLOP"
    return Figure(convention, value, unit, mode, RULES[convention])


def palm_flops(decoder: Decoder, batch: int, sequence: int, *, causal: bool = False) -> int:
    """Forward FLOPs as PaLM counts them: 2N + 4 L H Q T for each token."""
    scores = decoder.prefill(batch, sequence, form="expanded").scores
    tokens = batch * sequence
    return 2 * decoder.active_parameters * tokens + (scores // 2 if causal else scores)


def megatron_flops(decoder: Decoder, batch: int, sequence: int, *, causal: bool = True) -> int:
    """Forward FLOPs as Megatron-LM counts them: causal attention is half, the router nothing."""
    work = decoder.prefill(batch, sequence, logits="all", form="expanded")
    return work.flops - work.router - (work.scores // 2 if causal else 0)


def _counted(cost: Cost, convention: str, *, causal: bool) -> int:
    phases = (FORWARD,) if convention == FVCORE else (FORWARD, BACKWARD)
    known = counters()
    flops = 0
    for key, tally in cost.entries.items():
        if key.phase not in phases:
            continue
        family = known[key.operator][0] if key.operator in known else ""
        if convention == FVCORE and family not in ("matmul", "convolution"):
            continue
        flops += tally.flops - (tally.causal_flops if causal else 0)
    return flops if convention == FLOP else flops // 2


def _decoder(convention: str, config: object) -> Decoder:
    if config is None:
        raise UsageError(
            f"convention {convention}",
            "no configuration",
            Text("the sizes of a decoder", "解码器的尺寸"),
            Text("pass config=model.config", "请传入 config=model.config"),
        )
    return config if isinstance(config, Decoder) else Decoder.from_config(config)


def _tokens(convention: str, sequence: int | None) -> int:
    if sequence is None:
        raise UsageError(
            f"convention {convention}",
            "no sequence length",
            Text("the tokens of one sequence", "每条序列的token数"),
            Text("pass sequence=2048", "请传入 sequence=2048"),
        )
    return whole("sequence", sequence)
