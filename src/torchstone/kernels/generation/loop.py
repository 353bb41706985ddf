"""Designer, coder and verifier take turns until a kernel is accepted or a limit is reached.

A model's look decides whether a design or a kernel is fixed before it is used, at most once in a
row; the verifier alone decides whether a kernel is accepted. Every step is recorded.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from torchstone.core.codec import to_data
from torchstone.core.errors import InputError
from torchstone.kernels.candidate import Candidate, known_implementation
from torchstone.kernels.generation.agents import (
    REVIEWERS,
    WRITERS,
    Blame,
    Check,
    Next,
    Who,
    Written,
    form_of,
    messages,
    shortened,
)
from torchstone.kernels.problem import Problem, problem_from_source
from torchstone.kernels.verdicts.verdict import Verdict
from torchstone.trace.actions import ActionType
from torchstone.trace.ask import BudgetSpentError, MisfitError, ask
from torchstone.trace.exchange import Recorder, call_of
from torchstone.trace.http_client import ModelError
from torchstone.trace.messages import Client, Request, transcript
from torchstone.trace.trace import Trace, verify_names

T = TypeVar("T")
Verify = Callable[[Problem, Candidate], Verdict]
Progress = Callable[[int, int, str], None]
"""Told before every step: its number, how many there may be, what it does."""
Ending = Literal["accepted", "steps", "budget", "model", "unverified", "verifier"]
_CODING = frozenset({ActionType.DO_CODER, ActionType.FIX_CODER})
_FIXING = frozenset({ActionType.FIX_DESIGNER, ActionType.FIX_CODER})
_UNREADABLE = "The answer was no JSON object with code and description."


@dataclass(frozen=True, slots=True)
class Settings:
    """What a generation is told to do; all that a replay needs."""

    problem_name: str
    problem_source: str
    implementation: str
    model: str
    max_steps: int = 10
    max_tokens: int = 200_000
    max_seconds: float = 3600.0
    answer_tokens: int = 8192
    """Tokens that one answer may have."""
    temperature: float = 0.0
    seed: int = 0
    tool: str = "kernel"
    """Who can do it again."""

    def text(self) -> str:
        """As it stands in the record: every field, also those at their default."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields, ensure_ascii=False, indent=1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a generation ended."""

    ending: Ending
    steps: int
    detail: str = ""
    """What the model's server or the budget said, when one of them ended it."""
    verdict: Verdict | None = None
    """Of the last kernel that was verified."""
    kernel: Path | None = None
    """File of the last kernel that was verified; accepted or not."""
    key_variable: str = ""
    """Where the server refused the key: the environment variable that holds it."""

    @property
    def accepted(self) -> bool:
        return self.ending == "accepted"


class Loop:
    """One generation. `client` answers within its budget; `verify` gives the verdicts."""

    def __init__(
        self,
        settings: Settings,
        client: Client,
        trace: Trace,
        verify: Verify,
        progress: Progress | None = None,
    ) -> None:
        self._progress = progress
        self._settings, self._trace, self._verifier = settings, trace, verify
        self._problem = problem_from_source(settings.problem_source, settings.problem_name)
        self._implementation = known_implementation(settings.implementation)
        self._client = Recorder(client, trace.redact)
        self._design = self._code = self._suggestions = self._error_log = ""
        self._steps = self._fixes = 0
        self._verdict: Verdict | None = None
        self._kernel: Path | None = None

    def run(self) -> Outcome:
        """Step by step to the end; what ends it early is recorded as well."""
        self._trace.insert_start_record(self._settings.text())
        ending: Ending = "steps"
        detail = key_variable = ""
        action = ActionType.DO_DESIGNER
        try:
            while action is not ActionType.EXIT and self._steps < self._settings.max_steps:
                action = self._step(action)
            if self._verdict is not None and action is ActionType.EXIT:
                ending = _ending(self._verdict)
        except BudgetSpentError as error:
            ending, detail = "budget", error.given
        except ModelError as error:
            ending, detail = "model", f"{error.where}: {error.given}"
            key_variable = error.key_variable
        self._trace.insert_exit_record(ending, exchanges=self._client.take())
        return Outcome(ending, self._steps, detail, self._verdict, self._kernel, key_variable)

    def _step(self, action: ActionType) -> ActionType:
        """Do one step; the next one."""
        self._steps += 1
        if self._progress is not None:
            self._progress(self._steps, self._settings.max_steps, action.name)
        if action is ActionType.VERIFY:
            self._fixes = 0
            return self._verify()
        self._fixes = self._fixes + 1 if action in _FIXING else 0
        written = self._write(action)
        onward = ActionType.VERIFY if action in _CODING else ActionType.DO_CODER
        fix = ActionType.FIX_CODER if action in _CODING else ActionType.FIX_DESIGNER
        if not self._good(action, written) and not self._fixes:
            return fix
        if not written and action in _CODING:
            return ActionType.DO_CODER  # nothing that a verification could look at
        return onward

    def _write(self, action: ActionType) -> bool:
        """A designer or a coder writes; whether its answer can be read."""
        request = self._request(WRITERS[action])
        try:
            written, answer = ask(self._client, request, Written)
        except MisfitError as error:
            written, answer = Written("", ""), error.answer
        self._record(action, request, answer.text, answer.reasoning)
        if action in _CODING:
            self._code = written.code
        else:
            self._design = f"{written.code}\n\n{written.description}".strip()
        return bool(written.code.strip())

    def _good(self, action: ActionType, readable: bool) -> bool:
        """Whether a step's work may be used as it is. What cannot be read needs no look, and a
        reviewer that cannot be read does not hold up the work."""
        if not readable:
            self._suggestions = _UNREADABLE
            return False
        check = self._look(action, Check)
        self._suggestions = check.suggestions or check.reason if check else ""
        return check is None or check.result is Next.GO_ON

    def _verify(self) -> ActionType:
        candidate = Candidate(self._code, self._implementation)
        started = time.monotonic()
        try:
            verdict = self._verifier(self._problem, candidate)
        except InputError:  # the problem itself cannot be used: the user has to fix it
            self._trace.insert_exit_record("problem", exchanges=self._client.take())
            raise
        self._verdict, self._error_log = verdict, verdict.error_log()
        self._record_verdict(verdict, time.monotonic() - started)
        if _ending(verdict) != "steps":
            return ActionType.EXIT
        if self._steps >= self._settings.max_steps:
            return ActionType.EXIT
        blame = self._look(ActionType.VERIFY, Blame)
        self._suggestions = blame.suggestions or blame.reason if blame else ""
        designer = blame is not None and blame.result is Who.DESIGNER
        return ActionType.FIX_DESIGNER if designer else ActionType.FIX_CODER

    def _look(self, action: ActionType, kind: type[T]) -> T | None:
        """A reviewer's answer, recorded; None when it cannot be read."""
        request = self._request(REVIEWERS[action])
        found: T | None = None
        try:
            found, answer = ask(self._client, request, kind)
        except MisfitError as error:
            answer = error.answer
        exchanges = self._client.take()
        self._trace.insert_conductor_record(
            answer.text, transcript(request.messages), answer.reasoning, action,
            call=call_of(exchanges, request), exchanges=exchanges,
        )  # fmt: skip
        return found

    def _request(self, agent: str) -> Request:
        settings = self._settings
        plain = {
            "implementation": self._implementation,
            "framework": self._problem.framework,
            "form": form_of(self._implementation),
        }
        outside = {
            "problem": settings.problem_source,
            "design": self._design,
            "code": self._code,
            "suggestions": self._suggestions,
            "error_log": shortened(self._error_log),
        }
        return Request(
            messages(agent, plain, outside),
            settings.model,
            temperature=settings.temperature,
            max_tokens=settings.answer_tokens,
            seed=settings.seed,
            timeout_seconds=settings.max_seconds,
        )

    def _record(self, action: ActionType, request: Request, answer: str, reasoning: str) -> None:
        exchanges = self._client.take()
        self._trace.insert_designer_or_coder_record(
            answer, transcript(request.messages), reasoning, action,
            call=call_of(exchanges, request), exchanges=exchanges,
        )  # fmt: skip

    def _record_verdict(self, verdict: Verdict, seconds: float) -> None:
        gates = ", ".join(item.gate for item in verdict.failed)
        said = "True" if verdict.accepted else f"False ({gates})" if gates else "False"
        profile = json.dumps([to_data(item) for item in verdict.measures], ensure_ascii=False)
        record = self._trace.insert_verifier_record(said, self._error_log, profile, seconds=seconds)
        folder = self._trace.insert_verify_files(
            record.step, self._problem.framework, self._implementation,
            self._settings.problem_source, self._code, self._script(),
        )  # fmt: skip
        self._kernel = folder / self._names[1]

    @property
    def _names(self) -> tuple[str, str, str]:
        return verify_names(self._trace.op_name, self._problem.framework, self._implementation)

    def _script(self) -> str:
        """A file that runs this verification again, beside what it needs."""
        problem, kernel, _ = self._names
        return (
            '"""Verifies this kernel again."""\n\n'
            "from pathlib import Path\n\n"
            "from torchstone.cli.main import run\n\n"
            "here = Path(__file__).parent\n"
            f'words = ["kernel", "verify", str(here / "{problem}"), str(here / "{kernel}")]\n'
            f'raise SystemExit(run([*words, "--impl", "{self._implementation}"]))\n'
        )


def _ending(verdict: Verdict) -> Ending:
    """What a verdict makes of the loop; `steps` where the kernel is wrong and may be fixed."""
    if verdict.accepted:
        return "accepted"
    if verdict.crash:
        return "verifier"
    return "steps" if verdict.failed else "unverified"
