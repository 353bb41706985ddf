"""Everything that makes the user's program run without weights, and what came of it."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from torchstone.core.errors import TorchstoneError
from torchstone.core.text import Text
from torchstone.dryrun.annotations.check import AnnotationCheck
from torchstone.dryrun.annotations.function_calls import FunctionCalls
from torchstone.dryrun.annotations.observe import ShapeObserver
from torchstone.dryrun.compiling.graph_breaks import compile_calls
from torchstone.dryrun.compiling.recorded_calls import RecordedCalls
from torchstone.dryrun.data_spec import parse_sample
from torchstone.dryrun.meaning.cut_graphs import CutGraphs
from torchstone.dryrun.meaning.data_rows import DataRows
from torchstone.dryrun.meaning.kinds import Kinds
from torchstone.dryrun.record import Record
from torchstone.dryrun.script.budget import limit_run, stop_clocks
from torchstone.dryrun.script.coverage import unreached_parts
from torchstone.dryrun.script.data.checkpoints import keep_checkpoints
from torchstone.dryrun.script.data.given_data import give_data
from torchstone.dryrun.script.data.loaders import shorten_loaders
from torchstone.dryrun.script.device.as_written import (
    leave_pictures_out,
    script_as_written,
)
from torchstone.dryrun.script.device.cuda import pretend_cuda
from torchstone.dryrun.script.device.foreach import use_foreach_kernels
from torchstone.dryrun.script.endings import ended, exited, failed
from torchstone.dryrun.script.fakes.answers import Answers
from torchstone.dryrun.script.fakes.backward_hooks import hold_back_errors
from torchstone.dryrun.script.fakes.calls import Calls, follow_modules
from torchstone.dryrun.script.fakes.conversions import answer_conversions, copy_stale_tensors
from torchstone.dryrun.script.fakes.lazy import convert_modules, fake_parameters, make_mode
from torchstone.dryrun.script.fakes.memory import DeviceMemory, follow_memory
from torchstone.dryrun.script.fakes.pickling import allow_pickling
from torchstone.dryrun.script.fakes.uninitialized import convert_uninitialized, fake_uninitialized
from torchstone.dryrun.script.forks import Forks, Sink
from torchstone.dryrun.script.process_groups import follow_process_groups
from torchstone.dryrun.script.trials import Trials
from torchstone.dryrun.script.walls.guards import guard
from torchstone.dryrun.script.walls.overlay import Overlay, keep_writes
from torchstone.dryrun.session import EndOfRun, Session
from torchstone.dryrun.settings import ScriptSettings
from torchstone.dryrun.shapes.hazards import Hazards
from torchstone.observe.compat.backends import FAKE_DEVICE, register_fake_device
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes
from torchstone.observe.undo import Undo
from torchstone.observe.where import PROGRAM
from torchstone.runtime.on_meta.autocast import autocast_on_meta
from torchstone.sandbox.network import Network
from torchstone.starting.applying import apply_supplies


def run_program(
    settings: ScriptSettings,
    program: Callable[[World], Any],
    sink: Sink,
    attach: Callable[[World], None] | None = None,
) -> None:
    """Run a program in this process, which has no other use afterwards."""
    session = Session(settings, make_mode())
    world = prepare(session, sink)
    if attach is not None:
        attach(world)
    session.answer(replace(session.asks, leave=lambda: _leave(world)))
    try:
        with world.calls, world.answers:
            program(world)
        record = Record(ending="end")
    except EndOfRun as end:
        record = ended(end)
    except SystemExit as end:
        record = exited(end)
    except KeyboardInterrupt:
        record = Record(ending="time", ending_detail=Text("an interrupt", "中断"))
    except TorchstoneError:
        raise
    except BaseException as error:
        record = failed(session, error)
    conclude(world, record)


def conclude(world: World, record: Record) -> None:
    """Put the record of a program that has ended where it belongs."""
    session = world.session
    if session.is_copy:
        os._exit(0)
    stop_clocks()
    if session.ended is not None and record.ending not in ("time", "budget"):
        record = ended(session.ended)  # the program caught what should have ended it
    record = finish(world, record)
    asked = world.recorded.compiled() if session.path == 0 and not world.forks.in_trial else []
    if asked or (session.settings.compile and session.path == 0 and not world.forks.in_trial):
        record = replace(record, compilation=compile_calls(asked))
    world.forks.sink.put(record)


def _leave(world: World) -> None:
    end = world.session.ended
    assert end is not None
    with disable_modes(), DisableTorchFunction():
        conclude(world, ended(end))
    os._exit(0)


@dataclass(frozen=True)
class World:
    """All that stands around the program."""

    session: Session
    calls: Calls
    answers: Answers
    forks: Forks
    overlay: Overlay | None
    memory: DeviceMemory
    shapes: ShapeObserver
    recorded: RecordedCalls


def prepare(session: Session, sink: Sink) -> World:
    """Put all answers in place; the modes are entered by the caller."""
    settings = session.settings
    quiet_torch()
    torch.set_num_threads(1)  # a thread pool does not survive a fork
    calls = Calls(session)
    forks = Forks(session, sink)
    calls.repair = Trials(session, forks).repair
    hazards = Hazards(session)
    calls.checks.append(hazards.check)
    calls.writers = hazards.writers
    calls.checks.append(Kinds(session).check)
    cut, rows = CutGraphs(session), DataRows(session)
    calls.checks.append(cut.check)
    calls.handlers[torch.Tensor.data.__get__] = cut.cut_by_data  # type: ignore[attr-defined]
    cut.start()
    rows.start()
    if settings.real_parameters:
        session.note("real-parameters")
    else:
        fake_parameters(session)
        fake_uninitialized(session)
        convert_modules(convert_uninitialized)
    follow_modules(session)
    answer_conversions(session, calls)
    allow_pickling(session)
    shorten_loaders(session)
    if fields := parse_sample(settings.data):
        give_data(session, fields)
    keep_checkpoints(session)
    recorded = RecordedCalls(session)
    torch.compile = recorded.compile
    script_as_written(session)
    leave_pictures_out(session)
    torch.backends.mha.set_fastpath_enabled(False)  # fused layers are kernels of real devices
    if settings.cuda:
        if not settings.play_ranks:  # ranks share the CPU under the name of CUDA
            register_fake_device()
            hold_back_errors(session)
        pretend_cuda(session, calls)
        use_foreach_kernels("cpu" if settings.play_ranks else FAKE_DEVICE)
        autocast_on_meta(Undo(), lambda _: None, {FAKE_DEVICE: "cuda"})
    limit_run(session)
    overlay = None
    if settings.scratch:
        overlay = None if settings.allow_write else keep_writes(settings.scratch)
        if overlay is not None:
            session.answer(
                replace(session.asks, unfound=overlay.unfound, looked_for=overlay.looked_for)
            )
        guard(session)
        if not settings.confined and not settings.allow_write:
            session.note("unconfined")
        if settings.network == Network.OPEN.name:
            session.note("open-network")
    if not settings.play_ranks:
        follow_process_groups(session)
    found = overlay.to_read if overlay is not None else lambda path: path
    apply_supplies(settings.supplies, PROGRAM.is_own, session.used_stand_in, found)
    answers = Answers(session)
    calls.check_values = answers.known.check_function
    copy_stale_tensors(session, calls, answers)
    memory = follow_memory(session, everywhere=settings.play_ranks or not settings.cuda)
    session.answer(replace(
        session.asks, choose=forks.choose, value_of=answers.known.value_of,
        late_hazards=lambda: (*cut.hazards(), *rows.hazards()),
        live_bytes=lambda: memory.live, peak_bytes=lambda: memory.peak,
    ))  # fmt: skip
    answers.observers.append(memory.observe)
    return World(
        session, calls, answers, forks, overlay, memory, observe_functions(session), recorded
    )


def observe_functions(session: Session) -> ShapeObserver:
    """Check annotations where the program has them; keep shapes where they are asked for."""
    functions, shapes = FunctionCalls(), ShapeObserver()
    if importlib.util.find_spec("jaxtyping") is not None:
        functions.observers.append(AnnotationCheck(session).observe)
        functions.start_with("jaxtyping")
    if session.settings.observe_shapes:
        functions.observers.append(shapes.observe)
        functions.start()
    return shapes


def quiet_torch() -> None:
    """torch logs a traceback for each fake kernel that refuses; it is in our report."""
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)


def finish(world: World, record: Record) -> Record:
    """The record with all that was gathered on the way."""
    session = world.session
    if session.asks.uniform_questions():
        session.note("local-questions")
    replicas = session.asks.replicas()
    hazards = tuple(
        replace(hazard, count=session.hazard_counts[key]) for key, hazard in session.hazards.items()
    )
    if record.ending in ("budget", "time"):
        record = replace(record, unreached=unreached_parts(session.settings.script, session.counts))
    if record.ending in ("end", "budget"):  # what was not done yet is no fault
        hazards += session.asks.late_hazards()
    return replace(
        record,
        path=session.path,
        parent=session.parent,
        branch=session.branch,
        progress=session.counts.frozen(),
        assumptions=session.assumptions(),
        hazards=hazards,
        replicas=replicas,
        notes=tuple(session.notes),
        memory=world.memory.result(),
        written=tuple(map(os.path.relpath, world.overlay.written)) if world.overlay else (),
        processes=tuple(session.processes),
        addresses=tuple(session.addresses),
        functions=world.shapes.functions(),
    )
