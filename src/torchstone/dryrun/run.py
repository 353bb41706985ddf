"""`dry_run`: a script or a model in, a Report out."""

from __future__ import annotations

from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.dryrun.options import DryRunOptions
from torchstone.dryrun.ranks_report import report_on_ranks
from torchstone.dryrun.report import report_on_script
from torchstone.dryrun.script.launch import launch
from torchstone.dryrun.script.settings import ScriptSettings
from torchstone.runtime.devices import Device, device


def dry_run_command(options: DryRunOptions) -> Report:
    """What the command line asks for."""
    settings = settings_of(options)
    outcome = launch(settings)
    if settings.play_ranks:
        return report_on_ranks(options.target, outcome)
    return report_on_script(options.target, outcome, device_of(options))


def device_of(options: DryRunOptions) -> Device | None:
    """The accelerator that is pretended; None for the CPU."""
    return None if options.device == "cpu" else device(options.device)


def settings_of(options: DryRunOptions) -> ScriptSettings:
    path = Path(options.target)
    if path.suffix != ".py" or not path.is_file():
        raise InputError(
            f"dryrun: {options.target}",
            "a folder"
            if path.is_dir()
            else "no such file"
            if not path.exists()
            else "another file",
            Text(
                "a Python script that exists, or module:Model",
                "存在的 Python 脚本，或 module:Model",
            ),
            Text("give the path of a .py file", "请给出 .py 文件路径"),
        )
    named = device_of(options)
    return ScriptSettings(
        device_name=named.title if named else "",
        device_memory_bytes=named.memory_bytes if named else 0,
        script=options.target,
        arguments=options.arguments,
        allow_write=options.allow_write,
        cuda=options.device != "cpu",
        max_steps=options.max_steps,
        max_seconds=options.max_seconds,
        max_paths=options.max_paths,
        try_fixes=not options.no_fixes,
        world_size=max(1, options.world_size),
        local_world_size=options.local_world_size,
        play_ranks=options.world_size > 1,
    )


def dry_run(target: str, *arguments: str) -> Report:
    """Run a script with fake weights and report what breaks."""
    return dry_run_command(DryRunOptions(target=target, arguments=arguments))
