"""General relations on the project's own programs: what must hold in any training, whoever wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchstone._version import __version__
from torchstone.conductor.jobs.job import Job, Layer, Offer, Request, Skipped, short_name
from torchstone.conductor.jobs.versions import installed
from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.core.report import Report
from torchstone.core.text import Text

NAME, SEED_NAME, DEPTH = "experiments", "Experiments", "standard"
LAYER: Layer = "specialised"
GOALS = ("correctness",)
_MOST_SCRIPTS = 3
"""A project with more is a collection of examples: the first ones are what it is about."""
_SECONDS = 240.0
_RANKS = 2
"""The smallest number that shows what ranks do to each other."""
_WITH_ONE = "--against-one"
_OBSERVE = "--observe"
RANKS_JOB = "experiments-ranks-"


def version() -> str:
    torch = installed("torch")
    return f"{__version__} (torch {torch})" if torch else ""


def offer(request: Request) -> Offer:
    scripts = [item for item in request.facts.entry_points if item.trains]
    if not scripts:
        return Skipped(
            NAME,
            Text("no script that trains was found", "未找到进行训练的脚本"),
            "a README with the command that starts the training",
            "在 README 中写明启动训练的命令",
        )
    alone = tuple(
        Job(
            f"experiments-{short_name(item.path)}",
            NAME,
            LAYER,
            (item.path, *item.arguments),
            _SECONDS,
            Text(
                f"python {' '.join((item.path, *item.arguments))}, its calls made again with changed inputs",
                f"python {' '.join((item.path, *item.arguments))}，并以改变的输入重复其调用",
            ),
            Text("relations that any training must keep", "任何训练都应满足的关系"),
            runs_project=True,
        )
        for item in scripts[:_MOST_SCRIPTS]
    )
    together = [item for item in scripts if item.launched or item.together]
    return (*alone, *(_on_ranks(item) for item in together[:_MOST_SCRIPTS]))


def _on_ranks(item: EntryPoint) -> Job:
    launch = item.together or Launch(item.arguments, _RANKS)
    words = " ".join((item.path, *launch.arguments))
    return Job(
        f"{RANKS_JOB}{short_name(item.path)}",
        NAME,
        LAYER,
        (_WITH_ONE, item.path, *launch.arguments),
        _SECONDS,
        Text(
            f"{words} on {_RANKS} ranks against one process with the same data",
            f"{words}：{_RANKS} 个 rank 与使用同样数据的单进程比较",
        ),
        Text("the same gradients", "梯度相同"),
        runs_project=True,
    )


def observe_job(script: str, arguments: Sequence[str]) -> Job:
    """A run whose record is wanted, not a verdict on it."""
    words = (_OBSERVE, script, *arguments)
    nothing = Text("", "")
    return Job(f"{NAME}-observe", NAME, LAYER, words, _SECONDS, nothing, nothing, runs_project=True)


def relations_job(script: str, arguments: Sequence[str], ranks: bool) -> Job:
    """All relations on a script of somebody's choice."""
    words = (*((_WITH_ONE,) if ranks else ()), script, *arguments)
    nothing = Text("", "")
    return Job(f"{NAME}-asked", NAME, LAYER, words, _SECONDS, nothing, nothing, runs_project=True)


def run(job: Job) -> Report:
    from torchstone.conductor.experiments.against_one.running import compare_with_one
    from torchstone.conductor.experiments.observing import observe
    from torchstone.conductor.experiments.recording.session import Start
    from torchstone.conductor.experiments.running import run_experiments

    if job.arguments[0] == _OBSERVE:
        _, script, *arguments = job.arguments
        return observe(Start(Path.cwd(), script, tuple(arguments)))
    if job.arguments[0] == _WITH_ONE:
        _, script, *arguments = job.arguments
        return compare_with_one(Start(Path.cwd(), script, tuple(arguments)), _RANKS)
    script, *arguments = job.arguments
    return run_experiments(Start(Path.cwd(), script, tuple(arguments)))
