"""What a single call does to training: the effects that summaries of functions are made of."""

from __future__ import annotations

import ast
import re
from enum import Enum
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.sources.scene import Scene


class Effect(Enum):
    """One thing that a function can do to what it is given."""

    EVAL = "eval"
    TRAIN = "train"
    ZERO_GRAD = "zero_grad"
    BACKWARD = "backward"
    STEP = "step"
    SET_EPOCH = "set_epoch"
    SET_DEVICE = "set_device"
    SYNC = "sync"
    SEED = "seed"


class Event(NamedTuple):
    """An effect on something, as the function that has it writes it."""

    effect: Effect
    subject: str
    """`model`, `self.model`, or "" when it is more than a chain of names."""
    sure: bool
    """False when a branch, a loop or an exception handler decides whether it happens."""


_SEEDS = frozenset(("seed", "manual_seed", "seed_everything", "set_seed", "manual_seed_all"))
_SEEDED = ("numpy.random.", "random.", "torch.", "lightning", "pytorch_lightning", "transformers.")
_CLEARS = pattern(r"^zero_$|(?:zero|clear)\w*grad|grad\w*(?:zero|clear)", re.I)
"""`p.grad.zero_()`, `clear_grad()`, and what projects call their own: taken for clearing, which ends alarms."""
_SYNCS = frozenset(("item", "tolist", "numpy"))
_METHODS = {
    "zero_grad": Effect.ZERO_GRAD,
    "backward": Effect.BACKWARD,
    "set_epoch": Effect.SET_EPOCH,
}


def effect_of(scene: Scene, call: ast.Call) -> tuple[Effect, ast.expr | None] | None:
    """What a call does by itself, and to what; None for calls that do nothing of the kind."""
    func = call.func
    if scene.last_name(func) in _SEEDS and scene.qualified(func).startswith(_SEEDED):
        return Effect.SEED, None
    if isinstance(func, ast.Attribute):
        name, receiver = func.attr, func.value
        if name == "train" and scene.method(call):
            return _train(scene, call), receiver
        if name == "eval" and not call.args and scene.method(call):
            return Effect.EVAL, receiver
        if name in _METHODS and scene.method(call):
            return _METHODS[name], receiver
        if name == "step" and scene.method(call):
            return Effect.STEP, receiver
        if name in _SYNCS and not call.args and scene.method(call):
            return Effect.SYNC, receiver
        if name == "set_device":
            return Effect.SET_DEVICE, None
    if _CLEARS.search(scene.last_name(func)):
        return Effect.ZERO_GRAD, scene.receiver(call)
    return None


def cleared_by_hand(scene: Scene, root: ast.AST) -> list[ast.Attribute]:
    """Where gradients are dropped or set below a node: `p.grad = None`, `del p.grad`."""
    stores: list[ast.Attribute] | None = scene.cache.get("gradients set")
    if stores is None:
        stores = scene.cache["gradients set"] = [
            node
            for node in scene.all(ast.Attribute)
            if node.attr == "grad" and not isinstance(node.ctx, ast.Load)
        ]
    return [node for node in stores if scene.within(node, root)]


def _train(scene: Scene, call: ast.Call) -> Effect:
    """`train(False)` is `eval()`; with a flag, either: taken for `train()`, which ends alarms."""
    given = call.args[0] if call.args else scene.keyword(call, "mode")
    return Effect.EVAL if scene.literal(given) is False else Effect.TRAIN
