"""What was asked and answered, call by call, so that a run can be answered again from its record.

An exchange is found by the hash of its question. The model's name and what only this one call was
given (its time limit, whether it streams) are no part of the question: a fork may ask another
model, and the same words are the same question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import TorchstoneError
from torchstone.trace.ask import BudgetSpentError
from torchstone.trace.http_client import ModelError
from torchstone.trace.messages import Client, Request, Response
from torchstone.trace.record import Call

NO_RESPONSE = Response("")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question by its hash, and the answer, or why there was none."""

    key: str
    response: Response = NO_RESPONSE
    error: str = ""
    """What the client raised instead of an answer."""
    spent: bool = False
    """The error was a spent budget."""

    def answer(self) -> Response:
        """The answer again, or the error again."""
        if self.spent:
            raise BudgetSpentError(self.error)
        if self.error:
            raise ModelError("recorded answer", self.error)
        return self.response


def request_key(request: Request, redact: Callable[[str], str]) -> str:
    """The hash of a question as it is written down: after secrets were taken out."""
    asked = to_data(replace(request, model="", timeout_seconds=0.0, stream=False))
    text = json.dumps(asked, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return hashlib.sha256(redact(text).encode("utf-8", "backslashreplace")).hexdigest()


@dataclass
class Recorder:
    """A client that remembers every exchange, and the one place where secrets are taken out: of
    what is sent before it leaves, of an answer or a server's message before anyone uses it. So a
    run from the record sees the same words as the live one."""

    client: Client
    redact: Callable[[str], str]
    _kept: list[Exchange] = field(default_factory=list)

    def complete(self, request: Request) -> Response:
        key = request_key(request, self.redact)
        try:
            answer = self.client.complete(self._clean(request))
        except BudgetSpentError as error:
            self._kept.append(Exchange(key, error=self.redact(error.given), spent=True))
            raise
        except ModelError as error:
            said = self.redact(error.given)
            self._kept.append(Exchange(key, error=said))
            where, variable = self.redact(error.where), error.key_variable
            raise ModelError(where, said, error.again, error.wait, variable) from None
        clean = replace(
            answer, text=self.redact(answer.text), reasoning=self.redact(answer.reasoning)
        )
        self._kept.append(Exchange(key, clean))
        return clean

    def _clean(self, request: Request) -> Request:
        messages = (replace(item, text=self.redact(item.text)) for item in request.messages)
        return replace(request, messages=tuple(messages))

    def take(self) -> tuple[Exchange, ...]:
        """The exchanges since the last time, which are forgotten here."""
        kept, self._kept = tuple(self._kept), []
        return kept


def call_of(exchanges: Sequence[Exchange], request: Request) -> Call:
    """What is known of the calls behind one record; tokens and times add up."""
    answers = [item.response for item in exchanges if not item.error]
    if not answers:
        return Call(model=request.model)
    last = answers[-1]
    parameters = {
        name: value
        for name in ("temperature", "max_tokens", "seed")
        if (value := getattr(request, name)) is not None
    }
    return Call(
        model=last.model or request.model,
        parameters=parameters,
        input_tokens=_sum([item.input_tokens for item in answers]),
        output_tokens=_sum([item.output_tokens for item in answers]),
        seconds=sum(item.seconds for item in answers),
        finish_reason=last.finish_reason,
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def write_exchanges(exchanges: Sequence[Exchange]) -> str:
    """Exchanges as text; nothing for none."""
    if not exchanges:
        return ""
    return json.dumps([to_data(item) for item in exchanges], ensure_ascii=False)


def read_exchanges(text: str) -> tuple[Exchange, ...]:
    """The exchanges of a record; none where the text is no such list."""
    try:
        data = json.loads(text)
        return tuple(from_data(Exchange, item, "exchange") for item in data)
    except (ValueError, TypeError, RecursionError, TorchstoneError):
        return ()
