"""`torch.distributed` on a played rank: any backend name gives our process group."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
import torch.multiprocessing as torch_processes

from torchstone.core.text import Text
from torchstone.dryrun.ranks.posts import NEW_GROUP
from torchstone.dryrun.ranks.process.batch_norm import synchronise_statistics
from torchstone.dryrun.ranks.process.group import DryGroup
from torchstone.dryrun.ranks.process.link import Link
from torchstone.dryrun.ranks.process.replicas import Replicas
from torchstone.dryrun.ranks.process.work import DryWork
from torchstone.dryrun.script.fakes.answers import Answers
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session, is_fake, tensors_in
from torchstone.observe.compat.groups import (
    default_device_of,
    device_of_objects,
    make_fake_store,
    sharding_modules,
)
from torchstone.observe.compat.groups import new_group_with_tag as new_group_with_tag_of_torch
from torchstone.observe.ranks import Collective, check_splits

BACKEND = "dry"
_HOLDERS = ("torch.distributed", "torch.nn.parallel", "torch.testing", "accelerate", "transformers.train",
            "lightning", "pytorch_lightning", "deepspeed")  # fmt: skip
"""Modules that import functions of torch.distributed by name."""
_REPLACED = (
    "init_process_group", "get_backend", "_get_object_coll_device", "_get_pg_default_device",
    "monitored_barrier", "_new_group_with_tag", "is_nccl_available", "is_gloo_available",
)  # fmt: skip


NEEDS_REAL = "needs-real"
"""How a rank ends that cannot go on with fake parameters."""


class Groups:
    """The groups of this rank, under keys that are the same on all ranks."""

    def __init__(self, link: Link, world_size: int) -> None:
        self.link = link
        self.world_size = world_size
        self.asked_backend = "nccl"
        self._made: Counter[tuple[int, ...]] = Counter()

    def key_for(self, members: tuple[int, ...]) -> str:
        """By its ranks, and counted among groups of the same ranks."""
        self._made[members] += 1
        number = self._made[members]
        name = "world" if len(members) == self.world_size else "ranks " + _span(members)
        return name if number == 1 else f"{name} #{number}"

    def create(self, options: Any, _: Any) -> DryGroup:
        members = tuple(options.global_ranks_in_group) or tuple(range(options.group_size))
        key = self.key_for(members)
        return DryGroup(self.link, options.group_rank, options.group_size, key, members)


def _span(members: tuple[int, ...]) -> str:
    if len(members) > 4:
        return f"{members[0]},{members[1]}..{members[-1]}"
    return ",".join(map(str, members))


def install(session: Session, link: Link, answers: Answers, world_size: int) -> Groups:
    """Replace what starts processes and groups."""
    groups = Groups(link, world_size)
    dist.Backend.register_backend(
        BACKEND, groups.create, extended_api=True, devices=["cpu", "cuda"]
    )
    _replace_init(groups)
    _replace_new_group(groups)
    _replace_spawn(session)
    _replace_wrappers(session)
    if session.settings.cuda:
        synchronise_statistics()
    answers.functional = lambda func, args: _functional(groups, func, args)
    for name in ("is_nccl_available", "is_gloo_available"):
        replace_everywhere(getattr(c10d, name), lambda: True)
    link.mark_stale = answers.mark_stale
    link.mark_known = answers.mark_known
    link.is_stale = answers.is_stale
    torch.cuda.nccl.version = lambda: (2, 27, 0)
    return groups


def replace_everywhere(original: Any, replacement: Any) -> None:
    """Put a function in the place of another in every module that holds it by name."""
    for module, key in _names().get(id(original), ()):
        setattr(module, key, replacement)


@functools.cache
def _names() -> dict[int, list[tuple[Any, str]]]:
    """Who holds which function of torch.distributed; found once, before ranks are forked."""
    wanted = {id(getattr(c10d, name)) for name in _REPLACED}
    found: dict[int, list[tuple[Any, str]]] = {key: [] for key in wanted}
    for name, module in list(sys.modules.items()):
        if name.startswith(_HOLDERS) and hasattr(module, "__dict__"):
            for key, value in list(vars(module).items()):
                if id(value) in wanted:
                    found[id(value)].append((module, key))
    return found


find_names = _names
"""Called once in the warm process."""


def _replace_init(groups: Groups) -> None:
    original = c10d.init_process_group

    def init_process_group(
        backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1,
        rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None,
        device_id: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        groups.asked_backend = str(backend or "nccl").split(":")[-1]
        asked = world_size if world_size > 0 else _from_environment("WORLD_SIZE")
        own = rank if rank >= 0 else _from_environment("RANK")
        if asked != groups.world_size:
            raise RuntimeError(
                f"init_process_group was asked for world_size={asked}; "
                f"the job has {groups.world_size} ranks"
            )
        original(BACKEND, store=make_fake_store(), rank=own, world_size=asked)

    def get_backend(group: Any = None) -> str:
        return groups.asked_backend

    replace_everywhere(original, init_process_group)
    replace_everywhere(c10d.get_backend, get_backend)
    replace_everywhere(device_of_objects, lambda group=None: "cpu")
    replace_everywhere(default_device_of, lambda group=None: torch.device("cpu"))
    replace_everywhere(c10d.monitored_barrier, _monitored_barrier)


def _monitored_barrier(group: Any = None, *args: Any, **kwargs: Any) -> None:
    dist.barrier(group)


def _from_environment(name: str) -> int:
    if name not in os.environ:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return int(os.environ[name])


def _replace_new_group(groups: Groups) -> None:
    """The making of a group is posted: all ranks must make the same groups in the same order."""
    original = new_group_with_tag_of_torch

    def new_group_with_tag(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any,
                           **kwargs: Any) -> Any:  # fmt: skip
        members = tuple(sorted(ranks)) if ranks is not None else tuple(range(groups.world_size))
        if not kwargs.get("use_local_synchronization"):
            groups.link.post(b"", op=NEW_GROUP, group="new_group", members=members)
        return original(ranks, None, None, *args, **kwargs)

    replace_everywhere(original, new_group_with_tag)


def follow_broadcasts(replicas: Replicas) -> None:
    """DDP broadcasts parameters as one flat tensor and copies them out of it, except on the root."""
    original = getattr(dist, "_broadcast_coalesced")  # noqa: B009 - not exported

    def broadcast_coalesced(group: Any, tensors: Any, *args: Any) -> None:
        original(group, tensors, *args)
        replicas.shared(tensors, group)

    put(dist, "_broadcast_coalesced", broadcast_coalesced)


def _replace_spawn(session: Session) -> None:
    """A launcher inside the script starts all ranks; here each rank is its own process already."""
    own = session.settings.rank

    def spawn(
        fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, *a: Any, **k: Any
    ) -> None:
        runs = Text(
            f"rank {own} of {nprocs} runs here", f"此处运行 {nprocs} 个 rank 中的 rank {own}"
        )
        session.assume("multiprocessing.spawn", runs)
        if own < nprocs:
            fn(own, *args)

    put(torch_processes, "spawn", spawn)
    put(torch_processes, "start_processes", spawn)
    with contextlib.suppress(ImportError):
        import torch.multiprocessing.spawn as home

        put(home, "spawn", spawn)
        put(home, "start_processes", spawn)
    started = Counter[str]()

    def start(process: Any) -> None:
        number = started["all"]
        started["all"] += 1
        process._popen = None
        if number == own:
            process._target(*process._args, **process._kwargs)

    base = multiprocessing.process.BaseProcess
    put(base, "start", start)
    put(base, "join", lambda process, timeout=None: None)


def _replace_wrappers(session: Session) -> None:
    """Every rank has one device and it is the CPU: wrappers are not told of others."""
    from torch.distributed import device_mesh
    from torch.nn.parallel import DistributedDataParallel

    original = DistributedDataParallel.__init__

    def init(wrapper: Any, module: Any, device_ids: Any = None, output_device: Any = None,
             *args: Any, **kwargs: Any) -> None:  # fmt: skip
        original(wrapper, module, None, None, *args, **kwargs)

    put(DistributedDataParallel, "__init__", init)
    _replace_fsdp(session)
    mesh_init = device_mesh.DeviceMesh.__init__

    def make_mesh(mesh: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        mesh_init(mesh, "cpu", *args, **kwargs)

    put(device_mesh.DeviceMesh, "__init__", make_mesh)


def _replace_fsdp(session: Session) -> None:
    """FSDP1 looks into the storage of its parameters: it needs real ones."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    original = FullyShardedDataParallel.__init__

    def init(wrapper: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        if not session.settings.real_parameters:
            session.end(NEEDS_REAL, "FullyShardedDataParallel")
        original(wrapper, module, *args, **{**kwargs, "device_id": torch.device("cpu")})

    _share_empty_chunks()
    put(FullyShardedDataParallel, "__init__", init)


def _share_empty_chunks() -> None:
    """fully_shard makes an empty tensor for each rank beyond the rows of a parameter: in a world of
    a thousand that is most of its work. One is enough."""

    def chunk_with_empty(tensor: torch.Tensor, num_chunks: int, dim: int) -> list[torch.Tensor]:
        chunks = list(torch.chunk(tensor, num_chunks, dim=dim))
        if len(chunks) < num_chunks:
            chunks += [chunks[0].new_empty(0)] * (num_chunks - len(chunks))
        return chunks

    for home in sharding_modules():
        if hasattr(home, "_chunk_with_empty"):
            put(home, "_chunk_with_empty", chunk_with_empty)


def _resolve(name: Any) -> Any:
    return getattr(c10d, "_resolve_process_group")(name)  # noqa: B009 - not exported


def _functional(groups: Groups, func: Any, args: Any) -> Callable[[Any], None]:
    """Functional collectives on fake tensors never reach the group: they are posted here."""
    name = func._schema.name.rpartition("::")[2].removesuffix("_")
    if name in ("wait_tensor", "_wrap_tensor_autograd"):
        return lambda result: None
    group = _resolve(args[-1])
    tensors = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
    works = [_posted(group, name.removesuffix("_coalesced"), tensor, args) for tensor in tensors]

    def tell(result: Any) -> None:
        for work, tensor in zip(works, tensors_in(result), strict=False):
            if work is not None:
                work.awaited = True
                group.exchanged([tensor], work.post)

    return tell


def _posted(group: DryGroup, name: str, tensor: torch.Tensor, args: Any) -> DryWork | None:
    reduce = next((item for item in args[1:] if isinstance(item, str)), "sum")
    given = (tensor,)
    if name == "all_reduce":
        return group.perform(Collective("all_reduce", given, reduce=reduce))
    if name.startswith("all_gather_into_tensor"):
        return group.perform(Collective("all_gather", given))
    if name.startswith("reduce_scatter_tensor"):
        return group.perform(Collective("reduce_scatter", given, reduce=reduce))
    if name == "broadcast":
        return group.perform(Collective("broadcast", given, root=int(args[1])))
    if name == "all_to_all_single":
        sends, takes = tuple(map(int, args[2])), tuple(map(int, args[1]))
        check_splits(tensor, sends, group.size())
        return group.perform(Collective("all_to_all", given, in_splits=sends, out_splits=takes))
    return None


__all__ = ["Groups", "install", "is_fake"]
