"""`flow run`: the program as it is and with the plan; what both left behind is compared."""

from __future__ import annotations

import importlib
import json
import random
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from torchstone.core.codec import to_data
from torchstone.core.errors import TorchstoneError, UsageError
from torchstone.core.files import write_atomically
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.dataflow.bisection import bisect
from torchstone.dataflow.comparison import differences, outcome_of
from torchstone.dataflow.device.profile import profile_for
from torchstone.dataflow.options import RunOptions
from torchstone.dataflow.plan import MigrationPlan, load_plan
from torchstone.dataflow.run import check_program
from torchstone.dataflow.run_report import Culprit, Ran, Runs, report_on_runs
from torchstone.dataflow.script import check_subject, output_to_stderr, run_subject
from torchstone.dataflow.tracing.instrument import is_user_file

_SEED = 20_240_229
"""All runs start with this seed of random, numpy and torch: what they draw is the same."""

_TIMED = 0.25
"""Share of the calls that are computed on both sides when their speed is wanted."""
_MOST_BYTES = 1e15
"""Bytes per second where nothing is copied: JSON has no infinity."""


def run_command(options: RunOptions) -> Report:
    """Three runs: as it is, with the plan, and as it is again. The first one pays for imports and
    empty caches, so the last one is what the plan is timed against; what differs between the two
    cannot be compared."""
    check_subject("run", options.script, options.call)
    plan = load_plan(options.plan)
    check_program(plan, options.script, options.call)
    migrator = _migrator(plan, options)
    before = _run(options, nullcontext())
    after = _run(options, migrator)
    again = before if before.failure else _run(options, nullcontext())
    allowed = options.allow_rounding or plan.allow_rounding
    runs = Runs(
        subject=options.script or options.call,
        original=again,
        migrated=after,
        stats=migrator.get_stats(),
        different=tuple(differences(before.outcome, after.outcome)),
        unstable=frozenset(item.name for item in differences(before.outcome, again.outcome)),
        notes=migrator.notes(),
        verdicts=migrator.verdicts(),
        allows_rounding=allowed,
        fallbacks=migrator.fallbacks(),
    )
    if runs.wrong and not runs.failure:
        runs = _with_culprits(plan, options, runs, migrator.lines())
    if options.save_profile:
        _save_profile(migrator, runs.subject, Path(options.save_profile))
    return report_on_runs(plan, runs)


def _with_culprits(
    plan: MigrationPlan, options: RunOptions, runs: Runs, lines: Mapping[str, list[str]]
) -> Runs:
    """The entries of the plan that change results, found by running with fewer of them."""
    wrong = {item.name for item in runs.wrong}

    def differs(some: MigrationPlan) -> bool:
        ran = _run(options, _migrator(some, options))
        found = {item.name for item in differences(runs.original.outcome, ran.outcome)}
        return bool(found & wrong) or bool(ran.failure)

    called = {key: device for key, device in plan.context_device_map.items() if key in lines}
    found = bisect(replace(plan, context_device_map=called), differs)
    culprits = tuple(Culprit(key, tuple(lines.get(key, ()))) for key in found.keys)
    return replace(runs, culprits=culprits, are_told_apart=found.is_finished)


def _save_profile(migrator: Any, subject: str, path: Path) -> None:
    """What moved functions gained in the program's own calls, on the device that they ran on."""
    device = next((str(target.device) for target in migrator.targets.values()), "cpu")
    measured = profile_for(device)
    how = Text(f"measured on {device} while {subject} ran", f"运行 {subject} 时在 {device} 上实测")
    profile = replace(
        measured, how=how, speedups=migrator.speedups(), launch_seconds=0.0,
        bytes_per_second=min(measured.bytes_per_second, _MOST_BYTES),
    )  # fmt: skip
    write_atomically(path, json.dumps(to_data(profile), ensure_ascii=False, indent=1) + "\n")


def _migrator(plan: MigrationPlan, options: RunOptions) -> Any:
    try:
        module = importlib.import_module("torchstone.dataflow.migration")
    except ModuleNotFoundError as error:
        raise UsageError(
            "flow run", f"no {error.name}", Text("the catalogue of operators", "算子目录"),
            'pip install "torchstone[flow]"',
        ) from None  # fmt: skip
    rate = {"verify_rate": _TIMED} if options.save_profile else {}
    return module.PipelineMigrator.from_plan(plan, allow_rounding=options.allow_rounding, **rate)


def _run(options: RunOptions, around: AbstractContextManager[Any]) -> Ran:
    _seed_everything()
    failure = ""
    left: dict[str, Any] = {}
    start = perf_counter()
    with _modules_of_its_own(), output_to_stderr(), around:
        start = perf_counter()
        try:
            left = run_subject(options.script, options.call, options.arguments)
        except SystemExit as error:
            failure = "" if error.code in (None, 0) else f"SystemExit({error.code})"
        except TorchstoneError:
            raise
        except Exception as error:  # the user's own: shown as Python shows it
            failure = type(error).__name__
            traceback.print_exception(error, file=sys.stderr)
        seconds = perf_counter() - start
    return Ran(outcome_of(left), seconds, failure)


@contextmanager
def _modules_of_its_own() -> Iterator[None]:
    """The program's modules are imported anew by the next run: what one run left in them, such as a
    random generator, is not what the next one begins with. Libraries stay."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and is_user_file(file):
                del sys.modules[name]


def _seed_everything() -> None:
    random.seed(_SEED)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(_SEED)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(_SEED)
