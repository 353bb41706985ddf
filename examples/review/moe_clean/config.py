"""Sizes of the model."""

from dataclasses import dataclass


@dataclass
class Config:
    vocabulary: int = 40
    width: int = 32
    heads: int = 4
    depth: int = 2
    experts: int = 6
    top_k: int = 2
    expert_width: int = 48
    noise: float = 0.1
    balance_weight: float = 0.01
    z_weight: float = 1e-3
    dropout: float = 0.1
    longest: int = 64
