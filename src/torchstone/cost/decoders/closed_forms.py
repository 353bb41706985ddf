"""What a decoder costs, as formulas: prefill, decode, cache and weights, in whole numbers.

For the families in `decoder_config.FAMILIES` the figures equal, to the last digit, what a count of
the transformers model gives (2 x multiply-adds, full attention, active experts only). Rotary
embeddings are elementwise there and no part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchstone.core.pictures import Plot, Series
from torchstone.core.text import Text
from torchstone.cost.arguments import choice, whole
from torchstone.cost.decoders.decoder_config import read_sizes
from torchstone.cost.decoders.decoder_parts import (
    ABSORBED,
    CODE,
    EXPANDED,
    FORMS,
    Experts,
    Grouped,
    Latent,
    feed_forward_parameters,
)

LOGITS = ("last", "all")


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs of one forward pass by what they are for."""

    projections: int
    scores: int
    """QKᵀ and the weighted sum of the values."""
    feed_forward: int
    """Dense layers."""
    experts: int
    """Routed experts, the active ones only."""
    shared: int
    router: int
    head: int

    @property
    def flops(self) -> int:
        parts = self.projections + self.scores + self.feed_forward + self.experts
        return parts + self.shared + self.router + self.head


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder-only language model as sizes."""

    hidden: int
    layers: int
    vocabulary: int
    width: int
    """Of the dense feed-forward layers; 0 when every layer has experts."""
    attention: Grouped | Latent
    experts: Experts | None = None
    sparse_layers: int = 0
    """Layers with experts; the others are dense."""
    tied: bool = False
    """The head uses the weights of the embedding."""
    bias: bool = False
    """The dense feed-forward layers have biases."""
    window: int = 0
    """Tokens that a windowed layer looks back over, the new one included."""
    windowed_layers: int = 0

    @classmethod
    def from_config(cls, config: object) -> Decoder:
        """Read a transformers configuration, an object or a mapping with its names."""
        return cls(*read_sizes(config))

    @property
    def parameters(self) -> int:
        """All parameters, tied ones once; buffers are no parameters."""
        layer = self.attention.parameters(self.hidden) + 2 * self.hidden
        dense = feed_forward_parameters(self.hidden, self.width, self.bias)
        sparse = self.experts.parameters(self.hidden) if self.experts else 0
        return (
            self._tables * self.vocabulary * self.hidden
            + self.layers * layer
            + (self.layers - self.sparse_layers) * dense
            + self.sparse_layers * sparse
            + self.hidden
        )

    @property
    def active_parameters(self) -> int:
        """What one token goes through: of the routed experts only the active ones."""
        return self.parameters - self._idle(self.experts.active if self.experts else 0)

    @property
    def embedding_parameters(self) -> int:
        return self.vocabulary * self.hidden

    def prefill(
        self, batch: int, new: int, cached: int = 0, logits: str = "last", form: str = CODE
    ) -> Work:
        """`new` tokens for each of `batch` sequences, after `cached` tokens that are known."""
        whole("batch", batch)
        whole("new", new)
        whole("cached", cached, least=0)
        choice("logits", logits, LOGITS)
        choice("form", form, FORMS)
        tokens, context, near = batch * new, cached + new, self._near(cached) + new
        dense, sparse, moe = self.layers - self.sparse_layers, self.sparse_layers, self.experts
        rows = tokens if logits == "all" else batch
        spans = ((self.layers - self.windowed_layers, context), (self.windowed_layers, near))
        attention, hidden = self.attention, self.hidden
        return Work(
            projections=sum(
                n * attention.projections(hidden, batch, new, c, form) for n, c in spans
            ),
            scores=sum(n * attention.scores(batch, new, c, form) for n, c in spans),
            feed_forward=dense * 6 * tokens * self.hidden * self.width,
            experts=sparse * moe.work(self.hidden, tokens) if moe else 0,
            shared=sparse * moe.shared(self.hidden, tokens) if moe else 0,
            router=sparse * moe.router(self.hidden, tokens) if moe else 0,
            head=2 * rows * self.hidden * self.vocabulary,
        )

    def decode(self, batch: int, context: int, form: str = CODE) -> Work:
        """One new token for each sequence, after `context` tokens in the cache."""
        return self.prefill(batch, 1, context, "last", form)

    def cache_bytes_per_token(self, form: str = CODE, itemsize: int = 2) -> int:
        """What one token of one sequence leaves in the cache of all layers.

        Windowed layers forget it again: `cache_bytes` knows."""
        whole("itemsize", itemsize)
        choice("form", form, FORMS)
        return self.layers * self.attention.cache_elements(form) * itemsize

    def cache_bytes(self, batch: int, context: int, form: str = CODE, itemsize: int = 2) -> int:
        """The whole cache of `batch` sequences of `context` tokens."""
        whole("batch", batch)
        whole("context", context, least=0)
        kept = (self.layers - self.windowed_layers) * context
        kept += self.windowed_layers * self._near(context)
        elements = self.cache_bytes_per_token(form, itemsize) // self.layers
        return batch * kept * elements

    def weight_bytes_read(self, batch: int, itemsize: int = 2) -> int:
        """Weights that one decode step reads, each once.

        Of the embedding only the rows of the batch; of the routed experts the most that the batch
        can need, which is exact for one sequence and for batches that reach every expert.
        """
        whole("batch", batch)
        whole("itemsize", itemsize)
        rows = 0 if self.tied else self.embedding_parameters - batch * self.hidden
        idle = self._idle(self.experts.hit(batch) if self.experts else 0)
        return (self.parameters - max(rows, 0) - idle) * itemsize

    @property
    def _tables(self) -> int:
        return 1 if self.tied else 2

    def _near(self, past: int) -> int:
        """Past tokens that a windowed layer still has: the new one is part of the window."""
        return min(past, self.window - 1) if self.window else past

    def _idle(self, used: int) -> int:
        """Parameters of routed experts that are not among the `used` ones of each layer."""
        if self.experts is None:
            return 0
        idle = self.experts.routed - used
        return self.sparse_layers * idle * self.experts.expert_parameters(self.hidden)


def cache_growth(
    decoder: Decoder, contexts: Sequence[int], batch: int = 1, itemsize: int = 2
) -> Plot:
    """Bytes of the cache over the length of the context, as a picture."""
    forms = {"KV": CODE}
    if isinstance(decoder.attention, Latent):
        forms = {"latent": ABSORBED, "expanded": EXPANDED}
    how = Text(
        f"closed form, {batch} sequence(s), {itemsize} bytes a number",
        f"公式计算，{batch} 条序列，每个数 {itemsize} 字节",
    )
    return Plot(
        name=Text("KV cache over context length", "KV 缓存随上下文长度的增长"),
        series=tuple(
            Series(
                name=name,
                x=tuple(float(context) for context in contexts),
                y=tuple(float(decoder.cache_bytes(batch, c, form, itemsize)) for c in contexts),
                unit="B",
                how=how,
                x_name="tokens",
            )
            for name, form in forms.items()
        ),
        x_name="tokens",
        y_name="B",
        log_x=True,
        log_y=True,  # latent and expanded caches are far apart
    )
