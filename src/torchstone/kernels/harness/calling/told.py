"""Errors of other people's code, told in a line; without the words of that code where a model reads them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from torchstone.kernels.harness.reference.running import ProblemError
from torchstone.kernels.harness.values import UnknownValueError
from torchstone.kernels.messages.facts import Told

_MEMORY_WORDS = (
    "allocate memory",
    "bad_alloc",
    "Cannot allocate",
    "Unable to allocate",
    "out of memory",
)
_HOME = Path(__file__).parent.parent
_KINDS = {
    "TypeError": "an argument of the wrong type",
    "ValueError": "an argument of the wrong value",
    "IndexError": "a place outside of an array",
    "KeyError": "a key that is not there",
    "NameError": "a name that is not defined",
    "UnboundLocalError": "a name that has no value yet",
    "AttributeError": "an attribute that is not there",
    "ImportError": "a module that cannot be imported",
    "ModuleNotFoundError": "a module that is not there",
    "SyntaxError": "a line that is no Python",
    "AssertionError": "an assertion of its own",
    "RuntimeError": "an operation that torch or a kernel refuses, as shapes that do not fit",
    "NotImplementedError": "something that is not implemented",
    "ZeroDivisionError": "a division by zero",
    "RecursionError": "functions that call each other without end",
    "MemoryError": "no memory left",
    "TypingError": "code that numba cannot give types to",
    "UnsupportedError": "code that numba does not support",
    "LoweringError": "code that numba cannot compile",
    "CompilationError": "code that Triton cannot compile",
    "InterpreterError": "code that fails in Triton's interpreter",
    "OSError": "something that the sandbox does not allow",
    "PermissionError": "something that the sandbox does not allow",
    "FileNotFoundError": "a file that is not there",
}
"""Our words for what a candidate raised, by its class."""


class Saying:
    """Whether the words of an error may leave the process: a file's contents could be among them."""

    words: ClassVar[bool] = True


def told(error: BaseException, text: str | None = None) -> Told:
    """An error as kind, words and line of the executed source; `text` are words of our own."""
    line, ours = _place_of(error)
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
    known = isinstance(error, ProblemError | UnknownValueError)
    said = _words_of(error) if text is None else text
    kind = type(error).__name__
    bounds = "out of bounds" in said and not said.endswith("with size 0")
    memory = kind in ("MemoryError", "_ArrayMemoryError") or any(w in said for w in _MEMORY_WORDS)
    if text is None and not (Saying.words or known or ours):
        said = _KINDS.get(kind, "")
        kind = kind if kind in _KINDS else "an exception of its own"
    return Told("" if known else kind, said, line, bounds, memory)


def _place_of(error: BaseException) -> tuple[int, bool]:
    """The line of the executed source, and whether the error was raised by this package."""
    line, raised = 0, Path()
    trace = error.__traceback__
    while trace is not None:
        raised = Path(trace.tb_frame.f_code.co_filename)
        in_package = raised.is_relative_to(_HOME)
        if (raised.name == "candidate.py" and not in_package) or raised.name == "<problem>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line, raised.is_relative_to(_HOME) and raised.name in ("c_kit.py", "triton_kit.py")


def _words_of(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())[:300]
    except Exception:  # a class of the candidate may fail even to say what it is
        return ""
