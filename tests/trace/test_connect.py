"""A model's name becomes a client with a budget, by the package's own client or an SDK."""

from __future__ import annotations

import pytest

from tests.trace.server import Server, says
from torchstone.core.errors import UsageError
from torchstone.trace.ask import BudgetSpentError
from torchstone.trace.connect import connect
from torchstone.trace.messages import Message, Request

ASK = Request((Message("user", "hello"),))


@pytest.mark.parametrize("provider", ["http", "openai"])
def test_it_answers_within_its_budget(provider: str) -> None:
    with Server(says("hi")).open() as server:
        client = connect("small", server.url, provider, max_tokens=12, max_seconds=60.0)
        assert client.complete(ASK).text == "hi"
        assert server.asked[0]["model"] == "small"
        with pytest.raises(BudgetSpentError):
            client.complete(Request((Message("user", "x" * 100),)))


@pytest.mark.parametrize(
    ("model", "provider", "said"), [("", "http", "--model"), ("m", "opnai", "openai")]
)
def test_mistakes(model: str, provider: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        connect(model, "http://127.0.0.1:9/v1", provider, max_tokens=1, max_seconds=1.0)
