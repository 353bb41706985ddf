"""Secrets are found wherever they stand, and nothing else is changed."""

from __future__ import annotations

import pytest

from torchstone.trace.redact import MARK, redactor

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
