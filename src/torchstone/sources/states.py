"""What can hold at a place: an open autocast region, gradients switched off, only some ranks."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Autocast:
    """An autocast region that is open."""

    device: str
    """cuda, cpu, … or "" when the source does not tell."""
    dtype: str
    """float16, bfloat16 or "" when the source does not tell."""
    node: ast.AST | None = None
    certain: bool = True
    """False when it may be switched off at run time (`enabled=flag`, a nullcontext instead)."""


@dataclass(frozen=True, slots=True)
class Region:
    """What holds at a place."""

    autocast: Autocast | None = None
    autocast_off: bool = False
    """Inside `autocast(enabled=False)`."""
    no_grad: bool = False
    inference_mode: bool = False
    via: str = ""
    """The function whose callers open the region; "" when the place's own function does."""

    @property
    def without_grad(self) -> bool:
        return self.no_grad or self.inference_mode


class RankBranch(NamedTuple):
    """Why a place runs on some ranks only."""

    test: ast.expr
    """The condition that differs between ranks."""
    node: ast.stmt | ast.expr
    """The branch, or the early return that ended the function for the other ranks."""
    early: bool
    """True for an early return, continue or raise before the place."""
    arm: str = ""
    """body or orelse, for a branch."""
