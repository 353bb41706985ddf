"""Where models are wrapped for data-parallel training."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchstone.lint.facts.returned import maker_of
from torchstone.sources.scene import Scene

DDP = frozenset(
    ("torch.nn.parallel.DistributedDataParallel",)
    + ("torch.nn.parallel.distributed.DistributedDataParallel",)
)
FSDP = frozenset(
    ("torch.distributed.fsdp.FullyShardedDataParallel",)
    + ("torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",)
)
FULLY_SHARD = frozenset(
    ("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
    + ("torch.distributed._composable.fully_shard",)
)


class Wrap(NamedTuple):
    """One call that wraps a model."""

    call: ast.Call
    name: str
    """What the wrapped model is bound to, as written; "" when it is not bound."""
    inner: str
    """The model inside, as written; "" when it is made on the spot."""


def wraps(scene: Scene, kinds: frozenset[str] = DDP) -> list[Wrap]:
    """The calls of a file that wrap a model, in order."""
    found = [
        _wrap(scene, call)
        for name in {kind.rpartition(".")[2] for kind in kinds}
        for call in scene.calls.get(name, ())
        if scene.qualified(call.func) in kinds
    ]
    return sorted(found, key=lambda item: item.call.lineno)


def _wrap(scene: Scene, call: ast.Call) -> Wrap:
    statement = scene.statement(call)
    name = ""
    if isinstance(statement, ast.Assign) and statement.value is call:
        name = scene.dotted(statement.targets[0])
    inner = call.args[0] if call.args else scene.keyword(call, "module")
    return Wrap(call, name, scene.dotted(inner))


def wrapped_by(scene: Scene, node: ast.AST | None, kinds: frozenset[str] = DDP) -> ast.Call | None:
    """The call that wrapped what a name stands for, in a function of the project or here; or None."""
    found = maker_of(scene, node)
    return found.call if found is not None and found.name in kinds else None
