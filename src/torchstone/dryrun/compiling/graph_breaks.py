"""torch.compile's own front end over the recorded calls, on tensors without values.

It runs in a copy of the process, so that whatever the compiler does to it is gone with it.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import re
import signal
import sys
import traceback
import warnings
from typing import Any

import torch
from torch import nn

from torchstone.core.codec import from_data, to_data
from torchstone.core.place import Place
from torchstone.dryrun.compiling.recorded_calls import Compiled, shape_of
from torchstone.dryrun.harness import check_can_copy
from torchstone.dryrun.record import Compilation, CompileNote
from torchstone.dryrun.script.budget import stop_clocks
from torchstone.dryrun.script.fakes.answers import scalar_for
from torchstone.dryrun.script.patches import restore_all
from torchstone.observe.compat.compiler import (
    explain_breaks,
    forget_compiled,
    report_recompilations,
)
from torchstone.observe.where import PROGRAM

SECONDS = 60
"""A whole model of a few hundred layers is traced in half of it."""
SMALL = 1 << 22
"""Elements up to which real zeros are used: compiled code may ask for any value, and the forward of
four million parameters takes less than a second. Larger models run on the meta device."""
Notes = dict[tuple[str, Place, str], CompileNote]
_original_compile = torch.compile
_fork = os.fork
_RECOMPILES = "torch._dynamo.guards.__recompiles"
_RESUMED = "torch_dynamo_resume_in"
_TRIGGER = re.compile(r"Recompiling function (\S+) in (.+):(\d+)")


def compile_calls(compiled: list[Compiled]) -> Compilation:
    """Compile what was called, in a copy of this process; what breaks the graph and what recompiles."""
    read, write = os.pipe()
    check_can_copy()
    child = _fork()
    if child == 0:
        os.close(read)
        _answer(compiled, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        return Compilation(failed=f"the compiler did not come back within {SECONDS} s")
    return from_data(Compilation, json.loads(data), "compilation")


def _answer(compiled: list[Compiled], write: int) -> None:
    try:
        stop_clocks()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        sys.setprofile(None)
        found = _compile_all(compiled)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(json.dumps(to_data(found), ensure_ascii=False).encode("utf-8", "replace"))
    finally:
        os._exit(0)


def _compile_all(compiled: list[Compiled]) -> Compilation:
    restore_all()
    torch.compile = _original_compile
    torch.cuda.is_available = lambda: False
    torch.cuda.device_count = lambda: 0
    warnings.simplefilter("ignore")
    values = torch.library.Library("aten", "IMPL")
    values.impl("_local_scalar_dense", _value, "Meta", allow_override=True)
    notes: Notes = {}
    failed: list[str] = []
    graphs = calls = 0
    for item in compiled:
        try:
            device = _without_values(item.target)
            graphs += _breaks(item, device, notes)
            calls += len(item.calls)
            if not any(note.kind == "fullgraph" for note in notes.values()):
                _recompilations(item, device, notes)
        except Exception as error:
            name = getattr(item.target, "__name__", type(item.target).__name__)
            failed.append(f"{name}: {type(error).__name__}: {_first_line(str(error))}")
    return Compilation(tuple(notes.values()), graphs, calls, "; ".join(failed)[:600])


def _value(tensor: torch.Tensor) -> Any:
    """After a graph break Python asks for the value: the same answers as in the run itself."""
    return scalar_for(tensor.dtype)


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _without_values(target: Any) -> str:
    """Give the module of a target real parameters of zeros where it is small, and none where it is
    large; the device that its inputs must be on."""
    modules = _modules_of(target)
    tensors = (item for one in modules for item in (*one.parameters(), *one.buffers()))
    device = "cpu" if sum(item.numel() for item in tensors) <= SMALL else "meta"
    for part in (part for module in modules for part in module.modules()):
        for name, parameter in part._parameters.items():
            if parameter is not None:
                made = shape_of(parameter.detach()).made_on(device)
                part._parameters[name] = nn.Parameter(made, parameter.requires_grad)
        for holder in (part._buffers, part.__dict__):
            for name, value in holder.items():
                if isinstance(value, torch.Tensor):
                    holder[name] = shape_of(value.detach()).made_on(device)
        part._forward_pre_hooks.clear()
    return device


def _modules_of(target: Any) -> list[nn.Module]:
    """The module itself, that of a method, or those that a function finds around it."""
    if isinstance(target, nn.Module):
        return [target]
    around: list[Any] = [getattr(target, "__self__", None)]
    if inspect.isfunction(target):
        known = inspect.getclosurevars(target)
        around += [*known.globals.values(), *known.nonlocals.values()]
    return [item for item in around if isinstance(item, nn.Module)]


def _breaks(item: Compiled, device: str, notes: Notes) -> int:
    """Graphs that the first call is cut into; each cut with its line and reason."""
    call = next(iter(item.calls.values()), None)
    if call is None:
        return 0
    args, kwargs = call.made_on(device)
    with torch.set_grad_enabled(call.grad):
        said = explain_breaks(item.target, args, kwargs)
    for reason in said.break_reasons:
        place = _place(reason.user_stack)
        kind = "fullgraph" if item.may_not_break else "break"
        _add(notes, CompileNote(kind, place, *_parts(reason.reason)))
    return int(said.graph_count)


def _place(stack: list[traceback.FrameSummary]) -> Place:
    """The innermost line of the stack, which is where the compiler stopped."""
    if not stack:
        return Place()
    frame = stack[-1]
    return Place(PROGRAM.shown(frame.filename), frame.lineno or 0, frame.name)


def _parts(reason: str) -> tuple[str, str, str]:
    """What the compiler calls it, its explanation, and its first hint."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    explained = next((line for line in lines if line.startswith("Explanation:")), "")
    hint = next((line for line in lines if line.startswith("Hint:")), "")
    return (
        lines[0] if lines else "",
        explained.removeprefix("Explanation:").strip(),
        hint.removeprefix("Hint:").strip(),
    )


def _recompilations(item: Compiled, device: str, notes: Notes) -> None:
    """All calls through one compiled function: each guard that fails compiles it again."""
    forget_compiled()
    listener = _Listener(notes)
    report_recompilations()
    logger = logging.getLogger(_RECOMPILES)
    logger.handlers, logger.propagate = [listener], False
    options = {key: value for key, value in item.options.items() if key in ("dynamic", "fullgraph")}
    run: Any = _original_compile(item.target, backend="eager", **options)
    for call in item.calls.values():
        args, kwargs = call.made_on(device)
        if isinstance(item.target, nn.Module):
            item.target.train(call.training)
        with torch.set_grad_enabled(call.grad):
            run(*args, **kwargs)


class _Listener(logging.Handler):
    """Takes the compiler's own log of recompilations apart."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self._notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        lines = [line.strip() for line in record.getMessage().splitlines()]
        found = _TRIGGER.search(lines[0])
        if found is None or found[1].startswith(_RESUMED):
            return  # the rest of a function that was cut: told for the function itself
        place = Place(PROGRAM.shown(found[2]), int(found[3]), found[1])
        reasons = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        text = re.sub(r"^\d+/\d+: ", "", reasons[0]) if reasons else ""
        _add(self._notes, CompileNote("recompile", place, text))


def _add(notes: Notes, note: CompileNote) -> None:
    notes.setdefault((note.kind, note.place, note.what), note)
