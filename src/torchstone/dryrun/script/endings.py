"""How a program ended: by itself, by an exception, and for which cause."""

from __future__ import annotations

import dis
import traceback
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType

from torchstone.core.place import Place
from torchstone.dryrun.harness import HarnessError
from torchstone.dryrun.record import OperatorError, Record, Stop
from torchstone.dryrun.script.walls.guards import NO_NETWORK
from torchstone.dryrun.session import EndOfRun, Session
from torchstone.observe.compat.fakes import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torchstone.observe.where import HIDDEN, OWN, PROGRAM, STANDARD
from torchstone.starting.arguments import find_missing_arguments
from torchstone.starting.diagnosis import (
    chain_of,
    find_obstacle,
    is_fault_of_ours,
    own_place_of,
)
from torchstone.starting.misfits import has_made_data, obstacle_of_made_data
from torchstone.starting.obstacles import BrokenCall, EmptyData, NoNetwork
from torchstone.starting.supplies import MadeValues
from torchstone.starting.versions import raising_package, version_of

_PRETEND_ERRORS = (
    UnsupportedOperatorException,
    UnsupportedFakeTensorException,
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
    "Distributed package doesn't have NCCL built in",
    "Unable to handle autograd's threading in combination with fork",
)
"""What torch says where native code looks for the values of a tensor that has none."""
_OFFLINE = ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
"""What the Hugging Face hub raises where a file is not in its cache and the network is off."""


def ended(end: EndOfRun) -> Record:
    return Record(ending=end.how, ending_detail=end.detail, ending_place=end.spot)


def exited(end: SystemExit) -> Record:
    code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    detail = str(code) if isinstance(end.code, (int, type(None))) else str(end.code)
    if missing := find_missing_arguments(end):
        stop = Stop(
            "SystemExit", missing.message, last_place(end)[0], cause=missing.kind, obstacle=missing
        )
        return Record(ending="error", stop=stop, ending_place=stop.place)
    return Record(ending="exit", ending_detail=detail, ending_place=last_place(end)[0])


def failed(session: Session, error: BaseException) -> Record:
    """What an uncaught exception says, with the refused call behind it if there is one."""
    refused = refused_call(session, error)
    place, inside = last_place(error)
    cause = cause_of(error)
    obstacle = find_missing_arguments(error) or find_obstacle(
        error, session.asks.unfound(), session.asks.looked_for
    )
    if cause == "network" and obstacle is None:
        obstacle = NoNetwork(_text_of(error)[:120])
    if cause in ("program", "input") and obstacle is not None:
        cause = obstacle.kind
    if cause == "program" and refused is None and is_own_error(error):
        cause = "harness"
    if cause == "program" and refused is None and (package := raising_package(error)):
        cause, obstacle = "library", BrokenCall(package, version_of(package))
    if cause in ("program", "library") and has_made_data(session.settings.supplies):
        cause, said = "program", refused.message if refused is not None else ""
        obstacle = obstacle_of_made_data(
            error, said, session.asks.unfound(), session.asks.looked_for
        )
    if isinstance(obstacle, EmptyData):
        obstacle = replace(obstacle, places=tuple(map(session.asks.looked_for, obstacle.paths)))
    stop = Stop(
        exception=type(error).__name__,
        message=_text_of(error) + (f" ({own_place_of(error)})" if cause == "harness" else ""),
        place=place,
        inside=inside,
        module=getattr(error, "_dryrun_module", ""),
        cause=cause,
        stack=own_stack(error),
        obstacle=obstacle,
        own_raise=is_own_raise(error),
    )
    guessed = any(isinstance(item, MadeValues) for item in session.settings.supplies)
    if refused is not None and stop.cause == "program" and not guessed:
        return Record(ending="error", error=refused, stop=stop, ending_place=refused.place)
    return Record(ending="error", stop=stop, ending_place=place)


def refused_call(session: Session, error: BaseException) -> OperatorError | None:
    """The refused call of an exception or of one that it came from."""
    for one in chain_of(error):
        if id(one) in session.errors:
            return session.errors[id(one)]
    return None


def cause_of(error: BaseException) -> str:
    """Why a program stopped, looked for in the whole chain: libraries wrap what they meet."""
    for one in chain_of(error):
        if cause := getattr(one, "_dryrun_cause", ""):
            return str(cause)
        if isinstance(one, _PRETEND_ERRORS) or _is_our_limit(one):
            return "pretend"
        if type(one).__name__ in _OFFLINE or NO_NETWORK in _text_of(one):
            return "network"
        if isinstance(one, HarnessError):
            return "harness"
    return "program"


_RAISES = dis.opmap["RAISE_VARARGS"]
"""What `raise` and `assert` are compiled to."""


def is_own_raise(error: BaseException) -> bool:
    """Whether the innermost frame is the program's own and stands at a `raise` or `assert`."""
    steps = list(_steps_of(error.__traceback__))
    if not steps or PROGRAM.kind_of(steps[-1].tb_frame.f_code.co_filename) != OWN:
        return False
    return steps[-1].tb_frame.f_code.co_code[steps[-1].tb_lasti] == _RAISES


def _steps_of(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def is_own_error(error: BaseException) -> bool:
    """Whether what surrounds the program failed, and not the program."""
    if any(isinstance(one, HarnessError) for one in chain_of(error)):
        return True
    return is_fault_of_ours(error, PROGRAM)


def _is_our_limit(error: BaseException) -> bool:
    """torch has no kernel for the pretend device, or an operator of the user's own does not say its
    shapes: our limit, no fault of the program."""
    text = str(error) if isinstance(error, (NotImplementedError, RuntimeError)) else ""
    return any(word in text for word in _LIMITS)


def last_place(error: BaseException) -> tuple[Place, Place]:
    """The last line of the user's own code, and the library line below it if there is one."""
    own, library = Place(), Place()
    for frame, line in traceback.walk_tb(error.__traceback__):
        kind = PROGRAM.kind_of(frame.f_code.co_filename)
        if kind is OWN:
            own, library = PROGRAM.line_of(frame, line), Place()
        elif kind is not HIDDEN:
            library = PROGRAM.line_of(frame, line)
    return own, library


def own_stack(error: BaseException) -> tuple[Place, ...]:
    """The lines that the exception went through, without torch's and ours."""
    return tuple(PROGRAM.raised(error.__traceback__, STANDARD))[-12:]


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:600]
    except Exception:  # an exception of the user may fail even to say what it is
        return ""
