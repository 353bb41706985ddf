"""Everything that makes the user's program run without weights, and what came of it."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import _disable_current_modes

from torchstone.core.errors import TorchstoneError
from torchstone.core.text import Text
from torchstone.dryrun.annotations.check import AnnotationCheck
from torchstone.dryrun.annotations.function_calls import FunctionCalls
from torchstone.dryrun.annotations.observe import ShapeObserver
from torchstone.dryrun.compiling.graph_breaks import compile_calls
from torchstone.dryrun.compiling.recorded_calls import RecordedCalls
from torchstone.dryrun.data_spec import parse_sample
from torchstone.dryrun.record import OperatorError, Place, Record, Stop
from torchstone.dryrun.script.answers import Answers
from torchstone.dryrun.script.as_written import run_as_written, script_as_written
from torchstone.dryrun.script.backward_hooks import hold_back_errors
from torchstone.dryrun.script.budget import limit_run
from torchstone.dryrun.script.calls import Calls, follow_modules
from torchstone.dryrun.script.checkpoints import keep_checkpoints
from torchstone.dryrun.script.confine import confine
from torchstone.dryrun.script.conversions import answer_conversions
from torchstone.dryrun.script.device import pretend_cuda, register_backend
from torchstone.dryrun.script.foreach import use_foreach_kernels
from torchstone.dryrun.script.forks import Forks, Sink
from torchstone.dryrun.script.given_data import give_data
from torchstone.dryrun.script.guards import NO_NETWORK, guard
from torchstone.dryrun.script.lazy import PRETEND, convert_modules, fake_parameters, make_mode
from torchstone.dryrun.script.loaders import shorten_loaders
from torchstone.dryrun.script.memory import DeviceMemory, follow_memory
from torchstone.dryrun.script.overlay import Overlay, keep_writes
from torchstone.dryrun.script.places import HIDDEN, LIBRARY, OWN, kind_of, place_of
from torchstone.dryrun.script.session import EndOfRun, Session
from torchstone.dryrun.script.settings import ScriptSettings
from torchstone.dryrun.script.trials import Trials
from torchstone.dryrun.script.uninitialized import convert_uninitialized, fake_uninitialized
from torchstone.dryrun.shapes.hazards import Hazards
from torchstone.runtime.autocast import autocast_on_meta
from torchstone.runtime.undo import Undo

_PRETEND_ERRORS = (
    UnsupportedOperatorException,
    DataDependentOutputException,
    DynamicOutputShapeException,
)


_NO_STRATEGY = "does not have a sharding strategy registered"
"""Played ranks use operators of the CPU, for some of which DTensor has none while it has those of CUDA."""
_LIMITS = (
    "Could not run '",
    "no fake impl registered",
    "its data is not allocated yet",
    "Cannot access data pointer of Tensor",
    "Cannot access storage of",
    _NO_STRATEGY,
)
"""What torch says where native code looks for the values of a tensor that has none."""
_OFFLINE = ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
"""What the Hugging Face hub raises where a file is not in its cache and the network is off."""


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
    session.leave = lambda: _leave(world)
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
    signal.setitimer(signal.ITIMER_REAL, 0)
    if session.ended is not None and record.ending not in ("time", "budget"):
        record = ended(session.ended)  # the program caught what should have ended it
    record = finish(world, record)
    if world.recorded is not None and session.path == 0 and not world.forks.in_trial:
        record = replace(record, compilation=compile_calls(world.recorded.compiled()))
    world.forks.sink.put(record)


def _leave(world: World) -> None:
    end = world.session.ended
    assert end is not None
    with _disable_current_modes(), torch._C.DisableTorchFunction():
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
    recorded: RecordedCalls | None


def prepare(session: Session, sink: Sink) -> World:
    """Put all answers in place; the modes are entered by the caller."""
    settings = session.settings
    quiet_torch()
    torch.set_num_threads(1)  # a thread pool does not survive a fork
    confined = confine(settings.scratch, settings.allow_write) if settings.scratch else False
    calls = Calls(session)
    forks = Forks(session, sink)
    session.choose = forks.choose
    calls.repair = Trials(session, forks).repair
    hazards = Hazards(session)
    calls.checks.append(hazards.check)
    calls.writers = hazards.writers
    if settings.real_parameters:
        session.note("real-parameters")
    else:
        fake_parameters(session)
        fake_uninitialized(session)
        convert_modules(convert_uninitialized)
    follow_modules(session)
    answer_conversions(session, calls)
    shorten_loaders(session)
    if fields := parse_sample(settings.data):
        give_data(session, fields)
    keep_checkpoints(session)
    recorded = RecordedCalls(session) if settings.compile else None
    torch.compile = recorded.compile if recorded is not None else run_as_written
    script_as_written(session)
    torch.backends.mha.set_fastpath_enabled(False)  # fused layers are kernels of real devices
    if settings.cuda:
        if not settings.play_ranks:  # ranks share the CPU under the name of CUDA
            register_backend()
            hold_back_errors(session)
        pretend_cuda(session, calls)
        use_foreach_kernels()
        autocast_on_meta(Undo(), lambda _: None, {PRETEND: "cuda"})
    limit_run(session)
    overlay = None
    if settings.scratch:
        overlay = None if settings.allow_write else keep_writes(settings.scratch)
        _use_own_temporary_folder(settings.scratch)
        guard(session)
        if not confined and not settings.allow_write:
            session.note("unconfined")
    answers = Answers(session)
    memory = follow_memory(session, everywhere=settings.play_ranks or not settings.cuda)
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


def _use_own_temporary_folder(scratch: str) -> None:
    folder = os.path.join(scratch, "tmp")
    os.makedirs(folder, exist_ok=True)
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = folder


def quiet_torch() -> None:
    """torch logs a traceback for each fake kernel that refuses; it is in our report."""
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)


def finish(world: World, record: Record) -> Record:
    """The record with all that was gathered on the way."""
    session = world.session
    if session.uniform_questions is not None and session.uniform_questions():
        session.note("local-questions")
    replicas = session.replicas()
    hazards = tuple(
        replace(hazard, count=session.hazard_counts[key]) for key, hazard in session.hazards.items()
    )
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


def ended(end: EndOfRun) -> Record:
    return Record(ending=end.how, ending_detail=end.detail, ending_place=place_of(end.spot))


def exited(end: SystemExit) -> Record:
    code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    detail = str(code) if isinstance(end.code, (int, type(None))) else str(end.code)
    return Record(ending="exit", ending_detail=detail, ending_place=last_place(end)[0])


def failed(session: Session, error: BaseException) -> Record:
    """What an uncaught exception says, with the refused call behind it if there is one."""
    refused = refused_call(session, error)
    place, inside = last_place(error)
    stop = Stop(
        exception=type(error).__name__,
        message=_text_of(error),
        place=place,
        inside=inside,
        module=getattr(error, "_dryrun_module", ""),
        cause=cause_of(error),
        stack=own_stack(error),
    )
    if refused is not None and stop.cause == "program":
        return Record(ending="error", error=refused, stop=stop, ending_place=refused.place)
    return Record(ending="error", stop=stop, ending_place=place)


def refused_call(session: Session, error: BaseException) -> OperatorError | None:
    """The refused call of an exception or of one that it came from."""
    for one in _chain(error):
        if id(one) in session.errors:
            return session.errors[id(one)]
    return None


def cause_of(error: BaseException) -> str:
    """Why a program stopped, looked for in the whole chain: libraries wrap what they meet."""
    for one in _chain(error):
        if cause := getattr(one, "_dryrun_cause", ""):
            return str(cause)
        if isinstance(one, _PRETEND_ERRORS) or _is_our_limit(one):
            return "pretend"
        if type(one).__name__ in _OFFLINE or NO_NETWORK in _text_of(one):
            return "network"
    if isinstance(error, ModuleNotFoundError):
        return "missing-package"
    if isinstance(error, FileNotFoundError):
        return "missing-file"
    return "program"


def _is_our_limit(error: BaseException) -> bool:
    """torch has no kernel for the pretend device, or an operator of the user's own does not say its
    shapes: our limit, no fault of the program."""
    text = str(error) if isinstance(error, (NotImplementedError, RuntimeError)) else ""
    return any(word in text for word in _LIMITS)


def _chain(error: BaseException) -> list[BaseException]:
    """An exception and those that it came from."""
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    return found


def last_place(error: BaseException) -> tuple[Place, Place]:
    """The last line of the user's own code, and the library line below it if there is one."""
    own, library = Place(), Place()
    for frame, line in traceback.walk_tb(error.__traceback__):
        kind = kind_of(frame.f_code)
        if kind == OWN:
            own, library = place_of((frame.f_code, line)), Place()
        elif kind == LIBRARY:
            library = place_of((frame.f_code, line))
    return own, library


def own_stack(error: BaseException) -> tuple[Place, ...]:
    """The lines that the exception went through, without torch's and ours."""
    return tuple(
        place_of((frame.f_code, line))
        for frame, line in traceback.walk_tb(error.__traceback__)
        if kind_of(frame.f_code) != HIDDEN
    )[-12:]


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:600]
    except Exception:  # an exception of the user may fail even to say what it is
        return ""
