"""Secrets are found wherever they stand, and nothing else is changed."""

from __future__ import annotations

import pytest

from torchstone.trace.redact import _RULES, MARK, _matches, _passed, redactor

TOKEN = "abcdefghijklmnop1234"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"sk-{TOKEN}", MARK),
        (f"密钥是sk-{TOKEN}，请保密", f"密钥是{MARK}，请保密"),
        (f"令牌ghp_{TOKEN}。", f"令牌{MARK}。"),
        ("password：hunter2hunter2 再见", f"password：{MARK} 再见"),
        ("password: 请输入您的新密码再继续", "password: 请输入您的新密码再继续"),
        (f"İİ PASSWORD = {TOKEN}; x", f"İİ PASSWORD = {MARK}; x"),
        (f"Authorization: Bearer sk-{TOKEN} ok", f"Authorization: Bearer {MARK} ok"),
        (f"api_key='sk-{TOKEN}' api_key='sk-{TOKEN}'", f"api_key='{MARK}' api_key='{MARK}'"),
        ("k- risk-free high through ghost", "k- risk-free high through ghost"),
        ("\ud800 lone surrogate api_key=" + TOKEN, f"\ud800 lone surrogate api_key={MARK}"),
    ],
)
def test_secrets_are_taken_out_and_nothing_else(text: str, clean: str) -> None:
    assert redactor({})(text) == clean
    assert redactor({})(clean) == clean


def test_values_of_the_environment_may_have_spaces_and_ends() -> None:
    redact = redactor({"DB_PASSWORD": " correct horse battery\n", "HOME": "/home/somebody"})
    assert (
        redact("it is correct horse battery, at /home/somebody")
        == f"it is {MARK}, at /home/somebody"
    )


def test_a_word_in_which_every_place_might_begin_a_secret_is_read_once() -> None:
    """Otherwise every place reads the rest of the word, and a megabyte takes a second."""
    rule = next(item for item in _RULES if b"eyJ" in item.letters)
    word = b"-eyJ" * 1000
    assert _passed(rule, word, 1) == len(word)
    assert not list(_matches(rule, word, word, b"eyJ"))
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"
    assert redactor({})(f"{word.decode()} -{token}") == f"{word.decode()} -{MARK}"
