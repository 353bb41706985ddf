"""`review(path)`: a project in, a Report out, a run folder beside it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from torchstone.conductor.choices import Driver
from torchstone.conductor.drivers.model import ModelDriver
from torchstone.conductor.drivers.planner import Planner
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.records.folder import RunFolder, known_folder, new_folder
from torchstone.conductor.records.known_runs import note_run
from torchstone.conductor.run import Progress, Review, RunInfo, silent
from torchstone.core.errors import InputError, UsageError
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import render
from torchstone.trace.connect import connect
from torchstone.trace.exchange import Recorder
from torchstone.trace.redact import redactor


def review(
    path: str | Path = ".",
    *,
    goal: tuple[str, ...] = (),
    depth: str = "standard",
    component: str = "",
    tools: tuple[str, ...] = (),
    scenario: tuple[str, ...] = (),
    since: str = "",
    model: str = "",
    output: str | Path = "",
    apply: bool = False,
    lang: str = "en",
) -> Report:
    """Six phases over a project: what is wrong, what to do, and proof. Writes a run folder."""
    options = ReviewOptions(
        path=str(path), goal=tuple(goal), depth=depth, component=component, tools=tuple(tools),
        scenario=tuple(scenario), since=since, model=model, apply=apply,
    )  # fmt: skip
    return run_review(options, str(output), lang)[0]


def run_review(
    options: ReviewOptions, output: str, lang: str, progress: Progress = silent, command: str = ""
) -> tuple[Report, RunFolder]:
    """What the command line asks for."""
    if options.resume:
        folder = known_folder(options.resume)
        info = folder.load("run", RunInfo)
        if info is None:
            raise InputError(
                options.resume, "a run folder of another version",
                Text("a folder that this version wrote", "由当前版本生成的文件夹"),
                Text("start a new review", "请重新开始评审"),
            )  # fmt: skip
        root = Path(info.root)
        # what could harm comes from the command line only: the folder may be a stranger's
        options = replace(
            info.options, model=options.model, apply=options.apply, accept=options.accept, no_cache=options.no_cache,
            allow_unconfined=options.allow_unconfined, resume=options.resume,
        )  # fmt: skip
    else:
        root = _project(options.path)
        folder = new_folder(output)
        note_run(folder.path)
    made = Review(root, options, folder, driver_of(options), lang, progress)
    report = made.run()
    write_outputs(report, folder, lang, command)
    return report, folder


def _project(path: str) -> Path:
    root = Path(path)
    if root.is_dir():
        return root
    given = "a file" if root.exists() else "no such folder"
    raise InputError(
        f"review: {path}", given, Text("the folder of a project", "项目文件夹"),
        Text("name the folder that holds the code", "请指定代码所在的文件夹"),
    )  # fmt: skip


def driver_of(options: ReviewOptions) -> Driver:
    """The planner, or the model that was named."""
    if not options.model:
        return Planner()
    provider, _, rest = options.model.partition(":")
    tokens, seconds = options.max_tokens, options.max_seconds
    if provider in ("openai", "anthropic") and rest:
        client = connect(rest, provider=provider, max_tokens=tokens, max_seconds=seconds)
    elif provider in ("http", "https"):
        url, _, name = options.model.partition("#")
        client = connect(name or "default", url, max_tokens=tokens, max_seconds=seconds)
    else:
        raise UsageError(
            "--model", repr(options.model),
            Text("openai:NAME, anthropic:NAME or http://HOST/v1#NAME",
                 "openai:名称、anthropic:名称 或 http://主机/v1#名称"),
            Text("leave it out: the planner needs no model", "可省略：规划器不需要模型"),
        )  # fmt: skip
    return ModelDriver(Recorder(client, redactor()))


def write_outputs(report: Report, folder: RunFolder, lang: str, command: str) -> None:
    """The report in every form that people and programs read."""
    report = replace(report, command=command, date=time.strftime("%Y-%m-%d %H:%M %z"))
    for name, form in (("report.html", "html"), ("report.json", "json"), ("report.md", "markdown"),
                       ("findings.sarif", "sarif")):  # fmt: skip
        folder.write(name, render(report, form, lang=lang))
