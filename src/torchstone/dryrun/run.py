"""`dry_run`: a script or a model in, a Report out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchstone.core.errors import InputError, UsageError
from torchstone.core.report import Report, merge
from torchstone.core.text import Text
from torchstone.dryrun.annotations.write import annotate
from torchstone.dryrun.data_spec import parse_sample
from torchstone.dryrun.options import DryRunOptions
from torchstone.dryrun.record import NEEDS_RANKS
from torchstone.dryrun.reporting.annotations import annotation_measure
from torchstone.dryrun.reporting.answer import script_answer
from torchstone.dryrun.reporting.findings import TOOL
from torchstone.dryrun.reporting.progress import gpu_measure
from torchstone.dryrun.reporting.ranks.report import report_on_ranks
from torchstone.dryrun.reporting.script import report_on_script
from torchstone.dryrun.script.launch import Outcome, launch
from torchstone.dryrun.settings import ScriptSettings
from torchstone.runtime.devices import Device, device
from torchstone.starting.commands import is_script
from torchstone.starting.documents import is_document
from torchstone.starting.interpreters import find_interpreter
from torchstone.starting.loop import Attempt, run_with_repairs
from torchstone.starting.project import project_root
from torchstone.starting.supplies import Supply

OTHER_BATCH = 7
"""A batch size that no other axis is likely to have: with it a run tells a batch axis from others."""


_NOT_MISSING = ("harness", "pretend")
"""Causes for which nothing is supplied, whatever the program looked for."""


def dry_run(
    target: str | Path,
    arguments: Sequence[str] = (),
    *,
    inputs: Sequence[str] = (),
    world_size: int = 0,
    local_world_size: int = 0,
    gpus: int = 0,
    device: str = "h100-80g",
    max_steps: int = 4,
    max_seconds: float = 60.0,
    train: bool = False,
    symbolic: str = "",
    data: str = "",
    compile: bool = False,
    allow_write: bool = False,
    python: str = "",
) -> Report:
    """Run a script (or `module:Model`) with fake weights in a process of its own; what breaks."""
    return dry_run_command(
        DryRunOptions(
            target=str(target),
            arguments=tuple(arguments),
            input=tuple(inputs),
            train=train,
            symbolic=symbolic,
            world_size=world_size,
            local_world_size=local_world_size,
            gpus=gpus,
            device=device,
            max_steps=max_steps,
            max_seconds=max_seconds,
            data=data,
            compile=compile,
            allow_write=allow_write,
            python=python,
        )
    )


def dry_run_command(options: DryRunOptions) -> Report:
    """What the command line asks for."""
    settings = settings_of(options)
    if settings.play_ranks:
        return report_on_ranks(options.target, _start(settings), device_of(options))
    named = device_of(options)
    first = _start(settings)
    if first.ranks is not None:
        return report_on_ranks(options.target, first, named)
    settings = replace(settings, supplies=first.supplies)
    report = report_on_script(options.target, first, named)
    if settings.devices > 1:
        report = replace(report, measures=(*report.measures, gpu_measure(settings.devices)))
    sizes = _sizes(options.batch_sizes) or ([OTHER_BATCH] if options.annotate else [])
    outcomes = [launch(replace(settings, batch_size=size)) for size in sizes]
    others = [report_on_script(options.target, one, named) for one in outcomes]
    if options.annotate:
        report = _annotated(report, (first, *outcomes), options)
    if not others or not options.batch_sizes:
        return report
    found = merge([report, *(replace(other, measures=()) for other in others)], TOOL)
    return replace(found, subject=options.target)


def _start(settings: ScriptSettings) -> Outcome:
    """The program, again and again with what it lacks until it runs or nothing more can be supplied."""

    def run(supplies: tuple[Supply, ...]) -> Attempt[Outcome]:
        started = _launch(replace(settings, supplies=supplies))
        outcome = replace(started, supplies=supplies)
        record = outcome.ranks.record if outcome.ranks else next(iter(outcome.records), None)
        stop = record.stop if record is not None else None
        if stop is None or stop.obstacle is None or stop.cause in _NOT_MISSING:
            return Attempt(outcome, None, (), outcome.cpu_seconds)
        return Attempt(outcome, stop.obstacle, stop.stack[::-1], outcome.cpu_seconds)

    script = Path(settings.script) if settings.script else Path.cwd() / "model.py"
    if settings.as_it_is:
        return run(()).outcome
    packages = settings.interpreter.packages
    return run_with_repairs(run, project_root(script), script, packages).outcome


def _launch(settings: ScriptSettings) -> Outcome:
    """Run the program; as ranks where it makes processes or a process group of its own."""
    outcome = launch(settings)
    record = next(iter(outcome.records), None)
    if record is None or record.ending != NEEDS_RANKS:
        return outcome
    count = int(str(record.ending_detail))
    again = launch(replace(settings, play_ranks=True, world_size=count))
    return replace(again, cpu_seconds=outcome.cpu_seconds + again.cpu_seconds)


def _annotated(report: Report, outcomes: tuple[Outcome, ...], options: DryRunOptions) -> Report:
    """The report with the annotations that the runs gave; written only where that is asked for."""
    records = [record for one in outcomes for record in one.records]
    seen = (function for record in records for function in record.functions)
    files = annotate(seen, Path.cwd())
    if options.write:
        for file in files:
            file.write()
    diff = "".join(file.diff() for file in files)
    count = sum(file.functions for file in files)
    measure = annotation_measure(diff, count, options.write and bool(files))
    made = replace(report, measures=(measure, *report.measures))
    return replace(made, answer=script_answer(made))


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        sizes = [0]
    if any(size < 1 for size in sizes):
        raise UsageError(
            "--batch-sizes", repr(text), Text("whole numbers from 1 on", "从 1 起的整数"),
            Text("for example: --batch-sizes 1,7", "例如：--batch-sizes 1,7"),
        )  # fmt: skip
    return sizes


def device_of(options: DryRunOptions) -> Device | None:
    """The accelerator that is pretended; None for the CPU."""
    return None if options.device == "cpu" else device(options.device)


def settings_of(options: DryRunOptions) -> ScriptSettings:
    """The options, checked, as the child process is told them."""
    names_script = options.target.endswith((".py", ".ipynb")) or ":" not in options.target
    if names_script:
        _check_script(options.target)
    _check_numbers(options)
    _check_local(options)
    _check_model_options(options, names_script)
    _check_write(options)
    parse_sample(options.data)
    named = device_of(options)
    return ScriptSettings(
        script=options.target if names_script else "",
        arguments=options.arguments,
        target="" if names_script else options.target,
        inputs=options.input,
        train=options.train,
        symbolic=options.symbolic,
        device_name=named.title if named else "",
        device_memory_bytes=named.memory_bytes if named else 0,
        allow_write=options.allow_write,
        cuda=options.device != "cpu",
        devices=options.gpus or gpus_named_in(options.target if names_script else ""),
        max_steps=options.max_steps,
        max_seconds=options.max_seconds,
        max_paths=options.max_paths,
        try_fixes=not options.no_fixes,
        as_it_is=options.as_it_is,
        interpreter=find_interpreter(
            options.python, project_root(Path(options.target)) if names_script else Path.cwd()
        ),
        data=options.data,
        compile=options.compile,
        observe_shapes=options.annotate,
        world_size=max(1, options.world_size),
        local_world_size=options.local_world_size,
        play_ranks=options.world_size > 1,
    )


_GPU = re.compile(r"cuda:(\d)\b|\.cuda\((\d)\)|device_ids=\[[\d, ]*?(\d)\]")
"""How a program names one GPU of several."""


def gpus_named_in(script: str) -> int:
    """The highest number of a GPU in the source, plus one."""
    path = Path(script)
    if path.suffix != ".py" or not path.is_file():
        return 1
    named = _GPU.findall(path.read_text("utf-8", "replace"))
    return 1 + max((int(number) for match in named for number in match if number), default=0)


def _check_script(target: str) -> None:
    path = Path(target)
    if is_script(path) or is_document(target):
        return
    given = "a folder" if path.is_dir() else "another file" if path.exists() else "no such file"
    raise InputError(
        f"dryrun: {target}",
        given,
        Text("a Python script that exists, or module:Model", "存在的 Python 脚本，或 module:Model"),
        Text("give the path of a .py file", "请给出 .py 文件路径"),
    )


def _check_write(options: DryRunOptions) -> None:
    if options.write and not options.annotate:
        raise UsageError(
            "--write", "without --annotate", Text("--annotate --write", "--annotate --write"),
            Text("look at the diff of --annotate first", "请先查看 --annotate 的 diff"),
        )  # fmt: skip
    if options.annotate and options.world_size > 1:
        raise UsageError(
            "--annotate", f"--world-size {options.world_size}", Text("one process", "单个进程"),
            Text("leave --world-size out", "请去掉 --world-size"),
        )  # fmt: skip


def _check_local(options: DryRunOptions) -> None:
    if options.local_world_size > max(1, options.world_size):
        raise UsageError(
            "--local-world-size", str(options.local_world_size),
            Text(f"at most the world size, {options.world_size}", f"不超过 world size（{options.world_size}）"),
            Text("leave it out for 8 ranks on a node", "省略则每节点 8 个 rank"),
        )  # fmt: skip


def _check_model_options(options: DryRunOptions, is_script: bool) -> None:
    """What only a model has is not given to a script, and axes have names."""
    given = [name for name, value in (("--input", options.input), ("--symbolic", options.symbolic),
                                      ("--train", options.train)) if value]  # fmt: skip
    if is_script and given:
        raise UsageError(
            given[0], f"with the script {options.target}", Text("module:Model", "module:Model"),
            Text("name a model, or give the script its arguments after --",
                 "请指定模型，或在 -- 之后传入脚本参数"),
        )  # fmt: skip
    names = [word.strip() for word in options.symbolic.split(",")] if options.symbolic else []
    if not all(name.isidentifier() for name in names) or len(set(names)) < len(names):
        raise UsageError(
            "--symbolic", repr(options.symbolic), Text("different names of axes", "互不相同的轴名"),
            Text("for example: --symbolic B,T", "例如：--symbolic B,T"),
        )  # fmt: skip


def _check_numbers(options: DryRunOptions) -> None:
    for name, value, least in (
        ("--world-size", options.world_size, 0),
        ("--local-world-size", options.local_world_size, 0),
        ("--gpus", options.gpus, 0),
        ("--max-steps", options.max_steps, 1),
        ("--max-paths", options.max_paths, 1),
        ("--max-seconds", options.max_seconds, 1),
    ):
        if not least <= value < math.inf:  # not a number is refused too
            raise UsageError(
                name, str(value), Text(f"{least} or more", f"{least} 或更大"),
                Text("leave it out for the default", "省略即用默认值"),
            )  # fmt: skip
