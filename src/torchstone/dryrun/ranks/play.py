"""All ranks at once, forked from one warm process."""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import random
import signal
import socket
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from torchstone.core.codec import to_data
from torchstone.dryrun.harness import check_can_copy
from torchstone.dryrun.ranks.coordinator import Coordinator, Played
from torchstone.dryrun.ranks.process.choices import Choices
from torchstone.dryrun.ranks.process.install import (
    NEEDS_REAL,
    find_names,
    follow_broadcasts,
    install,
)
from torchstone.dryrun.ranks.process.link import Link
from torchstone.dryrun.ranks.process.provenance import Provenance
from torchstone.dryrun.ranks.process.races import Races
from torchstone.dryrun.ranks.process.replicas import Replicas
from torchstone.dryrun.ranks.process.set_order import order_sets_by_rank
from torchstone.dryrun.ranks.process.uniform import EQUAL, PASSES, Uniform
from torchstone.dryrun.ranks.wire import Wire
from torchstone.dryrun.record import Record
from torchstone.dryrun.script.fakes.lazy import make_mode
from torchstone.dryrun.session import TensorFaked
from torchstone.dryrun.settings import WALL_FACTOR, ScriptSettings
from torchstone.dryrun.world import World, run_program
from torchstone.observe.compat.autograd_engine import start_engine
from torchstone.observe.compat.groups import make_fake_store

_fork = os.fork
_ALWAYS = ("torch._dynamo", "torch.distributed.fsdp", "torch.distributed.tensor")
"""What the first optimizer step and the first sharded module would import on every rank."""


def play(
    settings: ScriptSettings, ranks: tuple[int, ...], program: Callable[[ScriptSettings], Any]
) -> list[Played]:
    """Run all ranks; again with other answers on rank 0 when a rank asked for a value of its own."""
    warm_up(settings)
    played = [_one_pass(settings, ranks, program, EQUAL)]
    if any(record.ending == NEEDS_REAL for record in played[0].records.values()):
        settings = replace(settings, real_parameters=True)
        played = [_one_pass(settings, ranks, program, EQUAL)]
    first = played[0]
    asks = any("local-questions" in record.notes for record in first.records.values())
    if asks and _clean(first):
        for answers in PASSES[1:]:
            played.append(_one_pass(settings, ranks, program, answers))
            if not _clean(played[-1]):
                break
    return played


def _clean(played: Played) -> bool:
    return not played.disagreements and not played.blocked and not played.died


def warm_up(settings: ScriptSettings) -> None:
    """Import and do once what every rank would do, so that copies share it."""
    start_engine()
    torch.set_num_threads(1)
    for name in _ALWAYS:
        importlib.import_module(name)
    with make_mode():
        layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        optimizer = torch.optim.AdamW(layers.parameters())
        layers(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    if "fsdp" in _source(settings).lower() or "parallelize_module" in _source(settings):
        _shard_once()
    for name in _imports_of(Path(settings.script)) if settings.script else ():
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    find_names()


def _source(settings: ScriptSettings) -> str:
    with contextlib.suppress(OSError):
        return Path(settings.script).read_text("utf-8", "replace")
    return ""


def _shard_once() -> None:
    """One sharded step in a world of one: what it imports and caches is shared by all ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("fake", store=make_fake_store(), rank=0, world_size=1)
    try:
        layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        mesh = init_device_mesh("cpu", (1,))
        fully_shard(layers, mesh=mesh)
        optimizer = torch.optim.AdamW(layers.parameters())
        layers(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    finally:
        dist.destroy_process_group()


def _imports_of(script: Path) -> list[str]:
    """Installed packages that the script imports; modules of the user's own wait for their ranks."""
    installed = tuple(path for name in ("purelib", "platlib") if (path := sysconfig.get_path(name)))
    found: dict[str, None] = {}
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse(script.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found.update(dict.fromkeys(names))
    kept = []
    for name in found:
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(name.partition(".")[0])
            if spec is not None and spec.origin and spec.origin.startswith(installed):
                kept.append(name)
    return kept


def _one_pass(
    settings: ScriptSettings,
    ranks: tuple[int, ...],
    program: Callable[[ScriptSettings], Any],
    answers: str,
) -> Played:
    wires: dict[int, Wire] = {}
    children: list[int] = []
    gc.collect()
    gc.freeze()  # a collection in a rank would touch, and so copy, all pages that it shares
    check_can_copy()
    for rank in ranks:
        ours, theirs = socket.socketpair()
        child = _fork()
        if child == 0:
            for wire in wires.values():
                wire.socket.close()
            ours.close()
            _be_rank(_of_rank(settings, rank, ranks[0]), program, answers, Wire(theirs))
        theirs.close()
        wires[rank] = Wire(ours)
        children.append(child)
    try:
        return Coordinator(wires, answers, WALL_FACTOR * settings.limit_seconds() + 5).run()
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for wire in wires.values():
            wire.socket.close()


def _of_rank(settings: ScriptSettings, rank: int, first: int) -> ScriptSettings:
    """Fixes are tried on one rank: all would try the same."""
    return replace(settings, rank=rank, try_fixes=settings.try_fixes and rank == first)


class _LinkSink:
    """The record of a rank goes to the coordinator."""

    def __init__(self) -> None:
        self.link: Link | None = None

    def put(self, record: Record) -> None:
        assert self.link is not None
        self.link.finish(json.dumps(to_data(record), ensure_ascii=False))


def _be_rank(
    settings: ScriptSettings, program: Callable[[ScriptSettings], Any], answers: str, wire: Wire
) -> None:
    """This process is one rank from now on; it never returns."""
    gc.disable()  # a rank lives for a second
    try:
        _set_environment(settings)
        _draw_apart(settings.rank)
        sink = _LinkSink()

        def attach(world: World) -> None:
            link = Link(world.session, wire, settings.rank)
            sink.link = link
            uniform = Uniform(world.session, settings.rank, answers)
            world.forks.on_trial = link.detach
            world.session.answer(replace(
                world.session.asks, answer_scalar=uniform.answer,
                uniform_questions=lambda: uniform.local_questions,
            ))  # fmt: skip
            world.answers.observers.append(uniform.observe)
            world.calls.checks.append(Races(link).check)
            order_sets_by_rank(settings.rank, settings.scratch)
            _follow_replicas(world, link, uniform)
            install(world.session, link, world.answers, settings.world_size)

        run_program(settings, lambda _: program(settings), sink, attach)
    finally:
        os._exit(0)


def _draw_apart(rank: int) -> None:
    """Processes that set no seed draw different numbers: copies of one process would not."""
    random.seed(f"rank {rank}")
    torch.default_generator.manual_seed(_SEED + rank)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(_SEED + rank)


_SEED = 20_000
"""Far from what a program may set itself."""


def _follow_replicas(world: World, link: Link, uniform: Uniform) -> None:
    """Every rank numbers what it holds, so that replicas can be compared at the end."""
    provenance = Provenance(world.session.settings.rank)
    provenance.follow_seeds()
    replicas = Replicas(world.session, uniform, provenance, world.answers.is_stale)
    answers = world.answers
    answers.observers.append(provenance.observe)
    link.on_exchanged = replicas.exchanged
    follow_broadcasts(replicas)

    def stands_in(real: torch.Tensor, fake: torch.Tensor) -> None:
        uniform.follow(real, fake)
        if not answers.is_blank(real):
            provenance.adopt(real, fake)

    answers.play_rank(Choices(provenance.of).replace)
    session = world.session
    session.answer(replace(session.asks, number_of=provenance.of, give_number=provenance.set))
    session.subscribe(TensorFaked, lambda event: stands_in(event.real, event.fake))


def _set_environment(settings: ScriptSettings) -> None:
    local = settings.local_ranks()
    os.environ.update(
        RANK=str(settings.rank),
        WORLD_SIZE=str(settings.world_size),
        LOCAL_RANK=str(settings.rank % local),
        LOCAL_WORLD_SIZE=str(local),
        GROUP_RANK=str(settings.rank // local),
        NODE_RANK=str(settings.rank // local),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
        TORCHELASTIC_RUN_ID="dryrun",
    )
    assert dist.is_available()
