"""The process that does one job. `python -P -m torchstone.conductor.jobs.worker JOB RESULT`.

It runs behind walls, in a copy of the project. What it writes is read as a report or not at all.
"""

from __future__ import annotations

import json
import os
import site
import sys
from pathlib import Path

from torchstone.conductor.jobs.job import Job
from torchstone.conductor.tools import all_tools
from torchstone.conductor.tools.dryrun import PYTHON
from torchstone.core.codec import from_data
from torchstone.core.errors import TorchstoneError
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.starting.interpreters import OURS, find_interpreter


def main(words: list[str]) -> None:
    job = from_data(Job, json.loads(Path(words[0]).read_text("utf-8")), "job")
    if job.runs_project:
        _use_environment(os.environ.get(PYTHON, ""))
    try:
        report = all_tools()[job.tool].run(job)
    except TorchstoneError as error:  # the user's input: told as a gap of this job
        reason = Message("review.job-input", Text(error.say("en"), error.say("zh")))
        report = Report(job.tool, gaps=(Gap(job.id, reason, "", failed=True, tool=job.tool),))
    Path(words[1]).write_text(report.to_json(indent=None), "utf-8")


def _use_environment(named: str) -> None:
    """Packages of the project's environment, after ours, where they are of this version of Python."""
    found = find_interpreter(named, Path.cwd()) if named else OURS
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for folder in found.packages:
        if version in Path(folder).parts:
            site.addsitedir(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
