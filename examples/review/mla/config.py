"""Sizes of the model."""

from dataclasses import dataclass


@dataclass
class Config:
    vocabulary: int = 40
    width: int = 48
    heads: int = 3
    nope_width: int = 16
    rope_width: int = 8
    value_width: int = 12
    rank: int = 20
    depth: int = 2
    dropout: float = 0.1
    longest: int = 64
