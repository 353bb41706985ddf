"""How a program ended: by itself, by an exception, and for which cause."""

from __future__ import annotations

import traceback

from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from torchstone.dryrun.record import OperatorError, Place, Record, Stop
from torchstone.dryrun.script.places import HIDDEN, LIBRARY, OWN, kind_of, place_of
from torchstone.dryrun.script.session import EndOfRun, Session
from torchstone.dryrun.script.walls.guards import NO_NETWORK

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
