"""What the process of one job does: `main([JOB, RESULT])`.

It runs in the sandbox, in a copy of the project. What it writes is read as a report or not at all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from torchstone.conductor.jobs.job import Job
from torchstone.conductor.tools import all_tools
from torchstone.conductor.tools.dryrun import PYTHON
from torchstone.core.codec import from_data
from torchstone.core.errors import TorchstoneError
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.starting.interpreters import OURS, find_interpreter, use_packages


def main(words: list[str]) -> None:
    job = from_data(Job, json.loads(Path(words[0]).read_text("utf-8")), "job")
    if job.runs_project:
        named = os.environ.get(PYTHON, "")
        use_packages(find_interpreter(named, Path.cwd()) if named else OURS)
    try:
        report = all_tools()[job.tool].run(job)
    except TorchstoneError as error:  # the user's input: told as a gap of this job
        reason = Message("review.job-input", Text(error.say("en"), error.say("zh")))
        report = Report(job.tool, gaps=(Gap(job.id, reason, "", failed=True, tool=job.tool),))
    Path(words[1]).write_text(report.to_json(indent=None), "utf-8")
