"""Attention and feed-forward of a decoder as sizes; parameters and FLOPs follow from them.

FLOPs are 2 x multiply-adds, attention is full (every query against every key), and `tokens` is
the number of tokens that go through the layer: batch x new.
"""

from __future__ import annotations

from dataclasses import dataclass

ABSORBED, EXPANDED, CODE = "absorbed", "expanded", "code"
FORMS = (ABSORBED, EXPANDED, CODE)
"""How latent attention is computed. `absorbed`: the cache holds the latent and attention works on
it. `expanded`: the cache holds keys and values. `code`: as transformers does it, which caches
the latent and expands all of it to keys and values at every step."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Attention whose query heads share key and value heads (MHA, GQA and MQA)."""

    heads: int
    kv_heads: int
    head_dim: int
    bias_in: bool = False
    bias_out: bool = False
    qk_norm: bool = False
    """A norm over the head dimension of queries and of keys."""

    def parameters(self, hidden: int) -> int:
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        weights = hidden * (query + 2 * key) + query * hidden
        biases = self.bias_in * (query + 2 * key) + self.bias_out * hidden
        return weights + biases + self.qk_norm * 2 * self.head_dim

    def projections(self, hidden: int, batch: int, new: int, context: int, form: str) -> int:
        """FLOPs of the four projections; the same in every form."""
        del context, form
        return 4 * batch * new * hidden * (self.heads + self.kv_heads) * self.head_dim

    def scores(self, batch: int, new: int, context: int, form: str) -> int:
        """FLOPs of QKᵀ and of the weighted sum of the values."""
        del form
        return 4 * batch * new * context * self.heads * self.head_dim

    def cache_elements(self, form: str) -> int:
        """Numbers that one token leaves in the cache of one layer."""
        del form
        return 2 * self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: keys and values are kept as one small latent per token."""

    heads: int
    query_rank: int
    """0 when queries are projected directly."""
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False

    @property
    def query_dim(self) -> int:
        return self.nope_dim + self.rope_dim

    def parameters(self, hidden: int) -> int:
        query = self.heads * self.query_dim
        rank = self.query_rank
        queries = hidden * rank + rank + rank * query if rank else hidden * query
        latent = hidden * (self.kv_rank + self.rope_dim) + self.kv_rank
        expand = self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
        out = self.heads * self.value_dim * hidden
        biases = self.bias * (rank + self.kv_rank + self.rope_dim + hidden)
        return queries + latent + expand + out + biases

    def projections(self, hidden: int, batch: int, new: int, context: int, form: str) -> int:
        """FLOPs of all projections, that of the latent to keys and values included."""
        tokens = batch * new
        query, rank = self.heads * self.query_dim, self.query_rank
        queries = hidden * rank + rank * query if rank else hidden * query
        latent = hidden * (self.kv_rank + self.rope_dim)
        out = self.heads * self.value_dim * hidden
        # absorbed, the same weights are applied to the queries and to the outputs instead
        expand = self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
        expanded = batch * context if form == CODE else tokens
        return 2 * tokens * (queries + latent + out) + 2 * expanded * expand

    def scores(self, batch: int, new: int, context: int, form: str) -> int:
        """FLOPs of QKᵀ and of the weighted sum of the values."""
        if form == ABSORBED:
            width = self.kv_rank + self.rope_dim + self.kv_rank
        else:
            width = self.query_dim + self.value_dim
        return 2 * batch * new * context * self.heads * width

    def cache_elements(self, form: str) -> int:
        """Numbers that one token leaves in the cache of one layer."""
        if form == EXPANDED:
            return self.heads * (self.query_dim + self.value_dim)
        return self.kv_rank + self.rope_dim


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of gated experts with its router."""

    routed: int
    active: int
    """Routed experts that one token goes through."""
    width: int
    shared_width: int = 0
    """Width of what every token goes through besides; 0 without."""
    shared_gate: bool = False
    """One weight per input that scales the shared part (Qwen2-MoE)."""
    shared_bias: bool = False

    def expert_parameters(self, hidden: int) -> int:
        return 3 * hidden * self.width

    def parameters(self, hidden: int) -> int:
        return (
            hidden * self.routed
            + self.routed * self.expert_parameters(hidden)
            + feed_forward_parameters(hidden, self.shared_width, self.shared_bias)
            + self.shared_gate * hidden
        )

    def router(self, hidden: int, tokens: int) -> int:
        """FLOPs of the choice of experts."""
        return 2 * tokens * hidden * (self.routed + self.shared_gate)

    def work(self, hidden: int, tokens: int) -> int:
        """FLOPs of the active routed experts."""
        return 6 * tokens * hidden * self.width * self.active

    def shared(self, hidden: int, tokens: int) -> int:
        return 6 * tokens * hidden * self.shared_width

    def hit(self, tokens: int) -> int:
        """The most routed experts that this many tokens can need at once."""
        return min(self.routed, tokens * self.active)


def feed_forward_parameters(hidden: int, width: int, bias: bool = False) -> int:
    """Gate, up and down of a gated feed-forward layer; nothing when there is none."""
    return 3 * hidden * width + (bias * (2 * width + hidden) if width else 0)
