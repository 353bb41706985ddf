"""One script of the project, run for a few seconds under the hooks."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import random
import signal
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from torchstone.conductor.probes.harvest.group import FileGroup, use_own_group
from torchstone.conductor.probes.harvest.listeners import Enough, Hooks, install
from torchstone.conductor.probes.harvest.precision import (
    RunMode,
    answer_for_accelerators,
    emulate_autocast,
)
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.observe.where import Where
from torchstone.starting.applying import put_in_copy
from torchstone.starting.arguments import add_arguments, find_missing_arguments
from torchstone.starting.diagnosis import own_lines
from torchstone.starting.documents import start_program
from torchstone.starting.lookups import Lookups
from torchstone.starting.misfits import find_any_obstacle
from torchstone.starting.supplies import Supply

_GRACE_SECONDS = 10.0
"""For what comes before the first call of a model, and for a run that makes no step."""


def harvest(
    root: Path, script: str, arguments: tuple[str, ...], seconds: float, rank: int = 0,
    world: int = 1, exchange: str = "", pretend: bool = True, supplies: tuple[Supply, ...] = (),
) -> tuple[Recording, Hooks]:  # fmt: skip
    """Run the script; what it did is in the recording even where it failed."""
    run = Recording(root, rank, world, script)
    where = Where(root)
    mode = RunMode()
    hooks = Hooks(run, where, mode, seconds)

    def noted(dtype: torch.dtype) -> None:
        if not hooks.quiet:
            run.autocasts.setdefault(where.own(3), dtype)

    _prepare(rank, world, pretend)
    answer_for_accelerators()
    emulate_autocast(mode, noted)
    use_own_group(rank, world, exchange)
    lookups = put_in_copy(supplies, root, where)
    install(hooks)
    with hooks.trace, mode, _time_limit(seconds + _GRACE_SECONDS):
        _run(root, script, add_arguments(arguments, supplies), run, where, supplies, lookups)
    FileGroup.tell_end()
    run.operators, run.absorbed = hooks.trace.operators, hooks.trace.absorbed
    return run, hooks


def _prepare(rank: int, world: int, pretend: bool) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world),
                      LOCAL_WORLD_SIZE=str(world), MASTER_ADDR="localhost", MASTER_PORT="29500")  # fmt: skip
    if pretend:  # most scripts use mixed precision on an accelerator only
        torch.cuda.is_available = lambda: True
        torch.cuda.device_count = lambda: world
    warnings.simplefilter("ignore")
    leave_compiler_out()


def leave_compiler_out() -> None:
    """Compiled functions run as they are written, and the compiler is not loaded for it."""
    torch.compile = lambda model=None, **_: model or (lambda function: function)  # type: ignore[assignment]
    if "torch._dynamo" not in sys.modules:
        sys.modules["torch._dynamo"] = torch._dynamo = _CompilerLeftOut("torch._dynamo")


class _CompilerLeftOut(types.ModuleType):
    """Optimizers load the whole compiler, two seconds, only to say that they are not compiled."""

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """Nothing is compiled: there is no graph to break."""

    @staticmethod
    def disable(function: Any, *_: Any, **__: Any) -> Any:
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked for when a part of it is imported
            raise AttributeError(name)
        del sys.modules["torch._dynamo"], torch._dynamo
        torch._dynamo = importlib.import_module("torch._dynamo")
        return getattr(torch._dynamo, name)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Enough

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _run(
    root: Path,
    script: str,
    arguments: list[str],
    run: Recording,
    where: Where,
    supplies: tuple[Supply, ...],
    lookups: Lookups,
) -> None:
    path = root / script
    sys.argv = [str(path), *arguments]
    sys.path[:0] = [str(path.parent), str(root)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            start_program(str(path))
    except Enough:
        run.end("time")
    except SystemExit as end:
        why = "" if not end.code else f"exit {end.code}"
        run.end(why, find_missing_arguments(end))
    except BaseException as error:  # whatever the script raises is a fact of the run
        why = f"{type(error).__name__}: {str(error)[:300]}"
        obstacle = find_any_obstacle(error, supplies, lookups)
        run.end(why, obstacle, own_lines(error, where.is_own))


def harvest_tests(hooks: Hooks, files: tuple[str, ...], seconds: float) -> None:
    """The project's own tests under the same hooks: only modules and their inputs are kept."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    pytest = importlib.import_module("pytest")
    hooks.limit(seconds)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:warnings", "--no-header", "--tb=no", *files]
    nothing = io.StringIO()
    with (
        contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing),
        contextlib.suppress(Enough, SystemExit), hooks.mode, _time_limit(seconds),
    ):  # fmt: skip
        pytest.main(words)
