"""Secrets are found wherever they stand, and nothing else is changed."""

from __future__ import annotations

import pytest

from torchstone.trace.published_rules import _by_keyword, entropy_of
from torchstone.trace.redact import _PIECE, _RULES, MARK, _Search, redactor

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
        (f"AWS_SECRET_ACCESS_KEY={TOKEN}", f"AWS_SECRET_ACCESS_KEY={MARK}"),
        ('{"token": "abc12345"}', f'{{"token": "{MARK}"}}'),
        ('{"max_tokens": 4096, "key": "rows"}', '{"max_tokens": 4096, "key": "rows"}'),
        ("sorted(rows, key=length_of_row_2)", "sorted(rows, key=length_of_row_2)"),
        *(
            (f"{start}{TOKEN}{TOKEN}{TOKEN}", MARK)
            for start in (
                "sk_live_",
                "pypi-",
                "npm_",
                "gsk_",
                "xai-",
                "whsec_",
                "shpat_",
                "dop_v1_",
                "hvs.",
                "GOCSPX-",
                "nvapi-",
                "glsa_",
                "lin_api_",
                "ATATT3",
            )
        ),
        (f"SG.{TOKEN}.{TOKEN}", MARK),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----", MARK),
        (f"AccountKey={TOKEN}{TOKEN}==;", f"AccountKey={MARK};"),
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
    word = "-eyJ" * 1000
    search = _Search(rule, b"eyJ")
    assert not list(search.secrets(word, word.encode(), 0))
    assert search.done == len(word)
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"
    assert redactor({})(f"{word} -{token}") == f"{word} -{MARK}"


@pytest.mark.parametrize("filler", ["x ", "字 ", "\ud800 "])
def test_a_secret_that_stands_across_two_pieces_is_found_once(filler: str) -> None:
    secret = f"ghp_{TOKEN}"
    for before in range(len(secret) + 1):
        padding = (filler * _PIECE)[: _PIECE - before - 1] + " "
        found = redactor({})(f"{padding}{secret} password={TOKEN}")
        assert found == f"{padding}{MARK} password={MARK}"


def test_a_secret_longer_than_a_piece_is_taken_out_whole() -> None:
    key = (
        "-----BEGIN PRIVATE KEY-----\n" + "k-gh hf\n" * (_PIECE // 4) + "-----END PRIVATE KEY-----"
    )
    assert redactor({})(f"a\n{key}\nb") == f"a\n{MARK}\nb"
    assert redactor({})("sk-" + "k-hf_gh" * _PIECE) == MARK


PUBLISHED = {
    "adobe": 'adobe_client = "0123456789abcdef0123456789abcdef"',
    "airtable": "airtable_key = abcdefghijklmnop1",
    "algolia": "algolia: 0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "asana": 'asana_secret="0a1b2c3d4e5f60718293a4b5c6d7e8f9"',
    "datadog": "DATADOG_APP = 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "dropbox": 'dropbox = "abc123def456ghi"',
    "fastly": "fastly: aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW",
    "intercom": "intercom=" + "aB3dE5fG7h" * 6,
    "mailgun": "mailgun = key-0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "sidekiq": "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=cafeb4be:deadb33f",
    "1password": "A3-AB12CD-EF34GH-IJ56K-LM78N-OP90Q-RS12T",
    "artifactory": "AKCp"
    + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vWxYzACEFHJLNPRTVXZbdfhjmoqsuwy13579246"[:69],
    "doppler": "dp.pt." + "aB3dE5fG7h" * 4 + "abc",
    "linear": "lin_api_" + "aB3dE5fG7h" * 4,
    "key without a name": "key-0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "kubernetes": "client-key-data: " + "aB3dE5fG7h" * 6,
    "langsmith": "lsv2_pt_" + "aB3dE5fG7h" * 4,
    "netrc": "machine host login user password aB3dE5fG7h",
    "elevenlabs": "sk_" + "0a1b2c3d4e" * 5,
    "prefect": "pnu_" + "abc123def4" * 3 + "567890",
}
"""One of a kind, made up, in the words that its service uses."""


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_kinds_of_secrets_that_are_published_are_taken_out(name: str) -> None:
    secret = PUBLISHED[name]
    found = redactor({})(f"before\n{secret}\nafter")
    assert MARK in found
    assert found.startswith("before\n")
    assert found.endswith("\nafter")
    assert redactor({})(found) == found


def test_every_published_pattern_is_one_and_begins_with_its_keyword() -> None:
    rules = {rule for rules in _by_keyword().values() for rule in rules}
    assert len({rule.id for rule in rules}) > 200
    for rule in rules:
        assert not list(rule.find("nothing to find here 0123456789", 0, 100))
    assert entropy_of("aaaa") == 0
    assert entropy_of("abcd") == 2


def test_code_and_numbers_stay_as_they_are() -> None:
    text = "adobe_client_version_2024 = build_number_123456\nsha256:" + "0123456789abcdef" * 4
    assert redactor({})(text) == text
