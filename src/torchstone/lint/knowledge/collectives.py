"""Which calls every rank of a job must make together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.lint.facts.paths import conditions
from torchstone.lint.knowledge.flow import own_calls, own_nodes
from torchstone.sources.scene import Function, Scene
from torchstone.sources.targets import is_outside, target_of

_DIST = (
    "all_reduce", "all_reduce_coalesced", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_gather_coalesced", "broadcast", "broadcast_object_list", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "gather",
    "gather_object", "all_to_all", "all_to_all_single", "barrier", "monitored_barrier", "new_group",
)  # fmt: skip
STATE = (
    "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
)  # fmt: skip
"""Functions that gather a state dict, from all ranks when the model is sharded."""

_ACCELERATOR = (
    "wait_for_everyone", "gather", "gather_for_metrics", "reduce", "pad_across_processes",
    "save_state", "load_state",
)  # fmt: skip
_ACCELERATE = (
    "gather", "gather_object", "broadcast", "broadcast_object_list", "reduce", "wait_for_everyone",
    "pad_across_processes",
)  # fmt: skip

_GROUP_AT = {
    "barrier": 0, "monitored_barrier": 0, "all_reduce": 2, "all_gather": 2, "broadcast": 2,
    "all_gather_into_tensor": 2, "all_gather_object": 2, "broadcast_object_list": 2,
    "all_to_all": 2, "reduce": 3, "reduce_scatter": 3, "reduce_scatter_tensor": 3, "scatter": 3,
    "scatter_object_list": 3, "gather": 3, "gather_object": 3, "all_to_all_single": 4,
}  # fmt: skip

COLLECTIVES: dict[str, str] = {
    **{f"torch.distributed.{name}": name for name in _DIST},
    **{f"torch.distributed.distributed_c10d.{name}": name for name in _DIST},
    **{f"deepspeed.comm.{name}": name for name in _DIST},
    **{f"torch.distributed.nn.{name}": name for name in _DIST},
    **{f"torch.distributed.nn.functional.{name}": name for name in _DIST},
    **{f"torch.distributed.checkpoint.state_dict.{name}": name for name in STATE},
    **{f"accelerate.utils.{name}": name for name in _ACCELERATE},
    "torch.distributed.checkpoint.save": "save",
    "torch.distributed.checkpoint.load": "load",
    "torch.distributed.checkpoint.async_save": "async_save",
    "torch_xla.core.xla_model.rendezvous": "rendezvous",
    "torch_xla.core.xla_model.all_reduce": "all_reduce",
    "torch_xla.core.xla_model.mesh_reduce": "mesh_reduce",
    "horovod.torch.allreduce": "allreduce",
    "horovod.torch.allgather": "allgather",
    "horovod.torch.broadcast": "broadcast",
}
"""Qualified names of functions that every rank of the group must call, with their short names."""

NAMES = tuple(sorted({*COLLECTIVES.values(), *_ACCELERATOR}))
"""The last names under which collectives are called."""

RANK_WORDS = (
    "rank", "local_rank", "global_rank", "get_rank", "RANK", "LOCAL_RANK", "is_main_process",
    "is_local_main_process", "is_master", "is_rank_0", "is_rank_zero", "is_world_process_zero",
    "is_main", "is_primary", "is_chief", "is_first_rank", "is_global_zero", "master_process",
)  # fmt: skip


_RANK_TEST = pattern(r"rank|main|master|primary|chief|root|first|zero", re.IGNORECASE)
_RANKED_FILE = (
    "rank",
    "RANK",
    "main_proc",
    "is_main",
    "master",
    "primary",
    "chief",
    "process_zero",
)


_DEPTH = 3  # functions between a branch and the collective; deeper ones cost a parsed file each
_DISTRIBUTED = pattern(
    r"is_initialized|is_available|world_size|distributed|use_ddp|\bddp\b|num_gpus|n_gpu", re.I
)


class Reached(NamedTuple):
    """A collective in a function of the project."""

    scene: Scene
    call: ast.Call
    name: str


class Collective(NamedTuple):
    """A call that waits for other ranks."""

    name: str
    world: bool
    """Whether the whole job takes part; False when a group is given."""


def collective(scene: Scene, call: ast.Call) -> Collective | None:
    """What a call is to the other ranks; None for anything that does not wait for them."""
    func = call.func
    name = COLLECTIVES.get(scene.qualified(func), "")
    if not name and isinstance(func, ast.Attribute) and func.attr in _ACCELERATOR:
        if scene.last_name(func.value) == "accelerator":
            name = func.attr
    if not name:
        return None
    if name in ("save", "load", "async_save"):
        alone = scene.keyword(call, "no_dist")
        if alone is not None and scene.literal(alone) is not False:
            return None
    return Collective(name, not _has_group(scene, call, name))


def _has_group(scene: Scene, call: ast.Call, name: str) -> bool:
    if name == "new_group":
        return False
    for keyword in call.keywords:
        if keyword.arg in ("group", "process_group", "pg", "mesh", "device_mesh"):
            return not _is_world(scene, keyword.value)
        if keyword.arg is None:
            return True
    place = _GROUP_AT.get(name)
    if place is not None and scene.qualified(call.func).startswith("torch.distributed."):
        given = scene.argument(call, place)
        if given is not None:
            return not _is_world(scene, given)
    return any(
        isinstance(item, ast.Starred)
        or ("group" in scene.last_name(item).lower() and not _is_world(scene, item))
        or scene.last_name(item.func if isinstance(item, ast.Call) else None) == "get_group"
        for item in call.args
    )


def _is_world(scene: Scene, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    return scene.dotted(node).endswith("group.WORLD")


def asks_rank(scene: Scene, test: ast.expr) -> bool:
    """Whether a condition may be about the rank, by its text alone; cheap enough for every `if`."""
    if "ranks" not in scene.cache:
        scene.cache["ranks"] = any(word in scene.source.text for word in _RANKED_FILE)
    return bool(scene.cache["ranks"]) and _RANK_TEST.search(scene.text(test)) is not None


def collectives_in(scene: Scene, nodes: Iterable[ast.AST]) -> list[tuple[ast.Call, Collective]]:
    """The world's collectives that stand below nodes, leaving inner functions out."""
    found: list[tuple[ast.Call, Collective]] = []
    for top in nodes:
        for call in own_calls(top):
            what = collective(scene, call)
            if what is not None and what.world:
                found.append((call, what))
    return found


def reached(scene: Scene, call: ast.Call, depth: int = _DEPTH) -> Reached | None:
    """The collective that a function of the project runs on whoever calls it, by itself or through
    what it calls; conditions that only ask whether there are ranks at all do not count."""
    target = target_of(scene, call) if depth else None
    if target is None:
        return None
    home, function = target
    known: dict[object, Reached | None] = scene.project.summaries
    key = ("reached", home.path, function.lineno, depth)
    if key not in known:
        known[key] = None  # a function that calls itself adds nothing
        known[key] = _reached_in(home, function, depth)
    return known[key]


def _reached_in(home: Scene, function: Function, depth: int) -> Reached | None:
    rows = collectives_of(home, function)
    names = [what.name for _, what in rows]
    for inner, what in rows:
        if names.count(what.name) == 1 and _always(home, inner):
            return Reached(home, inner, what.name)
    for inner in calls_in(home, function) if not rows else ():
        found = reached(home, inner, depth - 1)
        if found is not None and _always(home, inner):
            return found
    return None


def _always(scene: Scene, node: ast.AST) -> bool:
    return scene.rank_branch(node) is None and all(
        _DISTRIBUTED.search(atom.text) for atom in conditions(scene, node)
    )


def calls_in(scene: Scene, function: Function) -> list[ast.Call]:
    """The calls of a function that may be of the project and are no collective themselves."""
    return [
        node
        for node in own_nodes(function)
        if isinstance(node, ast.Call)
        and not is_outside(scene, node)
        and collective(scene, node) is None
    ]


def collectives_of(scene: Scene, function: Function) -> list[tuple[ast.Call, Collective]]:
    """The same of a function's body; worked out once."""
    kept: dict[ast.AST, list[tuple[ast.Call, Collective]]]
    kept = scene.cache.setdefault("collectives of functions", {})
    if function not in kept:
        kept[function] = collectives_in(scene, function.body)
    return kept[function]
