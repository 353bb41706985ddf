from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the model. Head sizes are per head, ranks are shared."""

    vocab_size: int = 64
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    q_rank: int = 32
    kv_rank: int = 24
    d_nope: int = 16
    d_rope: int = 8
    d_v: int = 16
    d_ff: int = 128
    dropout: float = 0.1
    rope_base: float = 10000.0

    def __post_init__(self) -> None:
        if self.d_rope % 2:
            raise ValueError("d_rope must be even")

    @property
    def d_qk(self) -> int:
        return self.d_nope + self.d_rope


@dataclass(frozen=True)
class TrainConfig:
    steps: int = 30
    batch_size: int = 4
    seq_len: int = 64
    lr: float = 3e-3
    grad_clip: float = 1.0
    seed: int = 0
    eval_every: int = 10
