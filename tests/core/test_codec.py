"""Plain data becomes the typed value again, or an error that says what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError


@dataclass(frozen=True)
class Chosen:
    """One word of a few, and perhaps a second one."""

    way: Literal["up", "down"]
    other: Literal["left", "right"] | None = None


@pytest.mark.parametrize("value", [Chosen("up"), Chosen("down", "left")])
def test_one_word_of_a_few_comes_back(value: Chosen) -> None:
    assert from_data(Chosen, to_data(value)) == value


@pytest.mark.parametrize("data", [{"way": "sideways"}, {"way": "up", "other": 3}, {"way": ["up"]}])
def test_another_word_is_an_error_that_names_the_words(data: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        from_data(Chosen, data)
    assert "up" in str(caught.value) or "Literal" in str(caught.value)


def test_the_error_says_where_and_what_was_expected() -> None:
    with pytest.raises(InputError, match=r"report\.way.*sideways.*one of up, down"):
        from_data(Chosen, {"way": "sideways"})
