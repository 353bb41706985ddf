"""Errors of other people's code, told in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchstone.kernels.harness.reference.running import ProblemError
from torchstone.kernels.harness.values import UnknownValueError


def told(error: BaseException) -> dict[str, Any]:
    """An error as kind, first line and line of the executed source."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        ours = path.parent == Path(__file__).parent
        if (path.name == "candidate.py" and not ours) or path.name == "<problem>":
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:  # a class of the candidate may fail even to say what it is
        text = ""
    known = isinstance(error, ProblemError | UnknownValueError)
    return {"kind": "" if known else type(error).__name__, "text": text, "line": line}
