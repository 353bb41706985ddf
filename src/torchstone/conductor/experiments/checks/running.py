"""A check on the project's own code: three seeds, each in a forked process, judged by pytest.

This runs inside the sandbox, in a copy of the project.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch

from torchstone.conductor.experiments.checks.check import Check
from torchstone.conductor.experiments.checks.helpers import CannotTellError
from torchstone.conductor.experiments.results import Result, combine
from torchstone.conductor.probes.processes import answers_of
from torchstone.core.codec import from_data, to_data

SEEDS = (0, 1, 2)
"""A fault that shows on one seed only may be noise; three that agree are taken for a fact."""
_MOST_TEXT = 600
_ENVIRONMENT = (ImportError, MemoryError, ConnectionError, PermissionError, TimeoutError)
"""Errors that say what this machine lacks, not what the project does."""
_IMPORTING = "<frozen importlib"


def run_check(check: Check, root: Path, seeds: Sequence[int] = SEEDS) -> Result:
    """All seeds; they must agree."""
    if importlib.util.find_spec("pytest") is None:
        return Result("not decided", "pytest is not installed: pip install pytest")
    importlib.import_module("pytest")  # loaded once, before the forks
    return combine(run_seeds(check, root, seeds))


def run_seeds(check: Check, root: Path, seeds: Sequence[int]) -> list[Result]:
    def work(seed: int) -> Callable[[], str]:
        return lambda: json.dumps(to_data(_run_in_child(check, root, seed)))

    return [_read(text, late) for text, late in answers_of([work(seed) for seed in seeds])]


def _read(text: str | None, late: bool) -> Result:
    if text is not None:
        return from_data(Result, json.loads(text), "result")
    return Result("not decided", "it took too long" if late else "its process ended")


def _run_in_child(check: Check, root: Path, seed: int) -> Result:
    pytest = importlib.import_module("pytest")
    with tempfile.TemporaryDirectory(prefix="check-") as folder:
        file = Path(folder, f"check_{check.id.removeprefix('c-')}.py")
        file.write_text(check.code, "utf-8")
        _prepare(check, root, seed)
        judge = Judge(root, file)
        sys.addaudithook(judge.audit)
        words = [
            "-q",
            "-x",
            "--no-header",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
        ]
        words += ["-o", "python_functions=test* check*", "-o", "addopts=", "-c", os.devnull]
        pytest.main([*words, f"--rootdir={folder}", f"--confcutdir={folder}", str(file)], [judge])
        return judge.result()


def _prepare(check: Check, root: Path, seed: int) -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["TORCHSTONE_CHECK_SEED"] = str(seed)
    sys.dont_write_bytecode = True
    sys.argv = [check.path]  # a script of the project that is imported may read its arguments
    os.chdir(root)
    beside = (root / check.path).parent
    sys.path[:0] = dict.fromkeys(map(str, (root, root / "src", beside)))
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)


def _errors_in(text: str) -> str:
    """The lines of a traceback of pytest that say what was raised; the end of it where none does."""
    raised = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    kept = "\n".join(raised) or text
    if len(kept) <= _MOST_TEXT:
        return kept
    return kept[-_MOST_TEXT:].partition("\n")[2] or kept[:_MOST_TEXT]


class Judge:
    """A plugin of pytest that says what each function of the check showed."""

    def __init__(self, root: Path, file: Path) -> None:
        self._root = str(root) + os.sep
        self._file = str(file)
        self._results: list[Result] = []
        self._reads: str = ""

    def result(self) -> Result:
        """Broken where any function failed; otherwise decided only where every one passed."""
        if self._reads:
            why = f"it reads the source text of {self._reads}: a check calls the code"
            return Result("not decided", why)
        broken = next((item for item in self._results if item.state == "broken"), None)
        if not self._results:
            return Result("not decided", "importing the check ended the program (sys.exit)")
        return broken or combine(self._results)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            text = _errors_in(str(report.longrepr))
            self._results.append(Result("not decided", f"the check could not be loaded: {text}"))

    def pytest_runtest_makereport(self, call: Any) -> None:
        if call.excinfo is not None:
            self._results.append(self._judged(call.excinfo.value, call.excinfo.tb, call.when))
        elif call.when == "call":
            self._results.append(Result("holds"))

    def _judged(self, error: BaseException, trace: TracebackType, when: str) -> Result:
        frames = list(_frames(trace))
        own = [item for item in frames if item[0].startswith(self._root)]
        path, line = (own[-1][0].removeprefix(self._root), own[-1][1]) if own else ("", 0)
        text = f"{type(error).__name__}: {error}"[:_MOST_TEXT]
        last = frames[-1][0] if frames else ""
        asserted = isinstance(error, AssertionError) and (
            last == self._file
            or last.startswith(self._root)
            or "torchstone" in last
            or "testing" in last
        )
        if (
            when != "call"
            or type(error).__name__ == "Skipped"
            or isinstance(error, CannotTellError)
        ):
            return Result("not decided", text)
        if isinstance(error, _ENVIRONMENT) or "cuda" in text.lower() or "nvidia" in text.lower():
            return Result("not decided", f"this machine lacks something: {text}", path, line)
        if asserted:
            return Result("broken", str(error)[:_MOST_TEXT] or "assertion failed", path, line)
        if own:
            return Result("broken", text, path, line)
        return Result("not decided", f"the check itself failed: {text}")

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Note the check opening source of the project: directly, or through the standard library."""
        if (
            event != "open"
            or not isinstance(args[0], str)
            or not args[0].endswith((".py", ".ipynb"))
        ):
            return
        if not os.path.abspath(args[0]).startswith(self._root):
            return
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self._file:
                self._reads = os.path.relpath(args[0], self._root)
                return
            if name.startswith((_IMPORTING, self._root)) or "site-packages" in name:
                return  # it is imported, or torch and pytest read it for their own ends
            frame = frame.f_back


def _frames(trace: TracebackType | None) -> list[tuple[str, int]]:
    found = []
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found
