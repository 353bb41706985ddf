"""Where models are wrapped for data-parallel training."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchstone.lint.facts.returned import Maker, maker_of
from torchstone.sources.scene import Scene
from torchstone.sources.targets import target_of

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
_WRAPPERS = DDP | FSDP | FULLY_SHARD


class Wrap(NamedTuple):
    """One call that wraps a model."""

    call: ast.Call
    name: str
    """What the wrapped model is bound to, as written; "" when it is not bound."""
    inner: str
    """The model inside, as written; "" when it is made on the spot."""
    within: Maker
    """The call of the wrapper itself, which may stand in a function of another file."""

    @property
    def direct(self) -> bool:
        """Whether the wrapper is called here, and not by a function of the project."""
        return self.within.call is self.call

    def option(self, name: str) -> ast.expr | None:
        """An argument that the wrapper is given by name."""
        return self.within.scene.keyword(self.within.call, name)


def wraps(scene: Scene, kinds: frozenset[str] = DDP) -> list[Wrap]:
    """The calls of a file that wrap a model, in order."""
    known: dict[frozenset[str], list[Wrap]] = scene.cache.setdefault("wraps", {})
    if kinds not in known:
        found = [
            _wrap(scene, call, Maker(scene, call))
            for name in {kind.rpartition(".")[2] for kind in kinds}
            for call in scene.calls.get(name, ())
            if scene.qualified(call.func) in kinds
        ]
        if any(scene.project.mentions(kind.rpartition(".")[2]) for kind in kinds):
            found += [
                wrap
                for wrap in _by_project(scene)
                if wrap.within.name in kinds and scene.qualified(wrap.call.func) not in kinds
            ]
        known[kinds] = sorted(found, key=lambda item: item.call.lineno)
    return known[kinds]


def _by_project(scene: Scene) -> list[Wrap]:
    """Calls of functions of the project that give a wrapped model back, whatever wraps it."""
    found: list[Wrap] | None = scene.cache.get("wraps by project")
    if found is None:
        found = scene.cache["wraps by project"] = []
        for statement in scene.all(ast.Assign):
            call = statement.value
            if isinstance(call, ast.Call) and target_of(scene, call) is not None:
                made = maker_of(scene, call)
                if made is not None and made.name in _WRAPPERS:
                    found.append(_wrap(scene, call, made))
    return found


def _wrap(scene: Scene, call: ast.Call, within: Maker) -> Wrap:
    statement = scene.statement(call)
    name = ""
    if isinstance(statement, ast.Assign) and statement.value is call:
        name = scene.dotted(statement.targets[0])
    inner = call.args[0] if call.args else scene.keyword(call, "module")
    return Wrap(call, name, scene.dotted(inner), within)


def wrapped_by(scene: Scene, node: ast.AST | None, kinds: frozenset[str] = DDP) -> ast.Call | None:
    """The call that wrapped what a name stands for, in a function of the project or here; or None."""
    found = maker_of(scene, node)
    return found.call if found is not None and found.name in kinds else None
