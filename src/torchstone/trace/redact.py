"""Secrets are taken out before anything is hashed or written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from torchstone.trace.published_rules import published_secrets

MARK = "[redacted]"
_SHORTEST = 8
_NAMED = re.compile(r"(?i)(key|token|secret|passw|credential)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one kind of secret looks like, and letters that every such secret has. Letters are
    found twenty times faster than a pattern, which is then tried only where they stand."""

    letters: tuple[bytes, ...]
    """In lower case for a pattern that takes both cases."""
    pattern: re.Pattern[str]
    """Its first group, where it has one, stays."""
    before: int = 0
    """How many characters before the letters the pattern begins."""
    any_case: bool = False
    word: re.Pattern[str] | None = None
    """Where the pattern fails, it fails everywhere in the same word, which is then passed over."""


_TOKEN = r"[A-Za-z0-9_\-]{16,}+"
_IS = r"\s{0,9}+[:=：]\s{0,9}+"
"""A colon, also that of Chinese text, or an equals sign."""


def _pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """ASCII: letters of other scripts are then no part of a word, so that a key that stands right
    behind Chinese text is found."""
    return re.compile(text, flags | re.ASCII)


_LETTERS = r"[A-Za-z0-9_\-]"
_BEGINNINGS: tuple[tuple[str, str], ...] = (
    # payments, shops, mail
    ("sk_live_", "{16,}+"),
    ("sk_test_", "{16,}+"),
    ("rk_live_", "{16,}+"),
    ("rk_test_", "{16,}+"),
    ("whsec_", "{16,}+"),
    ("sq0atp-", "{16,}+"),
    ("sq0csp-", "{16,}+"),
    ("shpat_", "{16,}+"),
    ("shpss_", "{16,}+"),
    ("shpca_", "{16,}+"),
    ("shppa_", "{16,}+"),
    ("xkeysib-", "{16,}+"),
    # packages and their registries
    ("pypi-", "{16,}+"),
    ("npm_", "{30,}+"),
    ("rubygems_", "{16,}+"),
    ("dckr_pat_", "{16,}+"),
    ("PMAK-", "{16,}+"),
    ("oy2", "{43}"),
    # language models
    ("gsk_", "{16,}+"),
    ("xai-", "{20,}+"),
    ("pplx-", "{20,}+"),
    ("r8_", "{30,}+"),
    ("fw_", "{20,}+"),
    ("nvapi-", "{20,}+"),
    ("tgp_v1_", "{16,}+"),
    ("csk-", "{20,}+"),
    ("lsv2_", "{30,}+"),
    ("sk_", "{40,}+"),
    ("api_org_", "{20,}+"),
    # clouds, databases, infrastructure
    ("dop_v1_", "{32,}+"),
    ("doo_v1_", "{32,}+"),
    ("dapi", "{32}"),
    ("sbp_", "{20,}+"),
    ("pscale_tkn_", "{16,}+"),
    ("pscale_pw_", "{16,}+"),
    ("hvs.", "{20,}+"),
    ("hvb.", "{20,}+"),
    ("GOCSPX-", "{16,}+"),
    ("ya29.", "{20,}+"),
    ("pul-", "{32,}+"),
    ("AGE-SECRET-KEY-1", "{30,}+"),
    ("dp.pt.", "{30,}+"),
    ("fo1_", "{20,}+"),
    ("v1.0-", "{140,}+"),
    ("ABIA", "{16}"),
    ("ACCA", "{16}"),
    # code, tickets, watching
    ("gldt-", "{16,}+"),
    ("glrt-", "{16,}+"),
    ("glptt-", "{16,}+"),
    ("ATBB", "{24,}+"),
    ("ATATT3", "{40,}+"),
    ("lin_api_", "{20,}+"),
    ("ntn_", "{20,}+"),
    ("secret_", "{40,}+"),
    ("sntrys_", "{20,}+"),
    ("sntryu_", "{20,}+"),
    ("glsa_", "{20,}+"),
    ("glc_", "{20,}+"),
    ("NRAK-", "{20,}+"),
    ("figd_", "{20,}+"),
    ("EAAC", "{30,}+"),
)
"""How keys of services begin, and how much follows: each service names its own so that they can be found."""
_PREFIXED = (
    *(
        _Rule((start.encode(),), _pattern(r"\b" + re.escape(start) + _LETTERS + count))
        for start, count in _BEGINNINGS
    ),
    _Rule((b"SG.",), _pattern(r"\bSG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+")),
    _Rule((b"hooks.slack.com/",), _pattern(r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,}+")),
    _Rule((b"key-",), _pattern(r"\bkey-[0-9a-f]{32}\b")),
    _Rule((b"client-key-data",), _pattern(r"(client-key-data" + _IS + r")[A-Za-z0-9+/=]{20,}+")),
    _Rule((b"login",), _pattern(r"(\blogin\s{1,9}+\S{1,200}+\s{1,9}+password\s{1,9}+)\S{4,}+")),
    _Rule((b":AA",), _pattern(r":AA[A-Za-z0-9_\-]{32,}+")),
    _Rule((b"AccountKey=", b"SharedAccessKey="), _pattern(
        r"((?:AccountKey|SharedAccessKey)=)[A-Za-z0-9+/=]{20,}+")),
    _Rule((b"-----BEGIN PGP",), _pattern(
        r"-----BEGIN PGP PRIVATE KEY BLOCK-----.*?(?:-----END PGP PRIVATE KEY BLOCK-----|\Z)", re.S)),
)  # fmt: skip


# Every repetition is bounded or gives nothing back, so that time grows with the length of the text.
_RULES = (
    _Rule((b"-----BEGIN ",), _pattern(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.S)),
    _Rule((b"k-",), _pattern(r"\b[spr]k-" + _TOKEN), before=1),
    _Rule((b"gh", b"github_pat", b"glpat", b"hf_", b"xox"), _pattern(
        r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|xox[abprs]-)" + _TOKEN)),
    _Rule((b"AKIA", b"ASIA"), _pattern(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    _Rule((b"AIza",), _pattern(r"\bAIza[A-Za-z0-9_\-]{30,}+")),
    _Rule((b"eyJ",), _pattern(
        r"\beyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+"),
        word=_pattern(r"[A-Za-z0-9_\-]++")),
    _Rule((b"://",), _pattern(r"(://[^/\s:@]{1,200}+:)[^@\s/]{1,500}+(?=@)")),
    _Rule((b"authorization",), _pattern(
        r"(?i)(\bauthorization" + _IS + r"(?:(?:bearer|basic|token)\b\s{0,9}+)?)[!-~]++"), any_case=True),
    _Rule((b"bearer",), _pattern(r"(?i)(\bbearer\s{1,9}+)[A-Za-z0-9._~+/\-]{12,}+=*+"), any_case=True),
    _Rule((b"api", b"secret", b"passw", b"access"), _pattern(
        r"(?i)((?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token)\b[\"']?" + _IS
        + r"[\"']?)[^\s\"',;}\x80-\U0010ffff]{8,}+"), any_case=True),
    # a name in capitals, as in a file of settings; a quoted value with a digit in it, as in JSON
    _Rule((b"KEY", b"TOKEN", b"SECRET", b"PASSW", b"CREDENTIAL", b"_PAT"), _pattern(
        r"((?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|CREDENTIALS?|_PAT)[A-Z0-9_]{0,30}+\s{0,3}+=\s{0,3}+[\"']?)"
        r"[^\s\"',;}\x80-\U0010ffff]{8,}+")),
    _Rule((b"token", b"secret", b"passw", b"credential"), _pattern(
        r"(?i)((?:token|secret|passw(?:or)?d|credentials?)[a-z0-9_\-]{0,20}+[\"']" + _IS
        + r"[\"'])(?=[^\s\"']*\d)[^\s\"']{8,500}+"), any_case=True),
    *_PREFIXED,
)  # fmt: skip
_LETTERS_OF_RULES = tuple((letters, rule) for rule in _RULES for letters in rule.letters)
_LONGEST = max(len(letters) for letters, _ in _LETTERS_OF_RULES)
_PIECE = 1 << 18
"""Characters that are searched for all letters before the next: they stay in the processor's cache."""


def redactor(environment: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """A function that takes secrets out of a text: those of the environment, and what looks
    like one."""
    values = environment if environment is not None else os.environ
    named = {value.strip() for name, value in values.items() if _NAMED.search(name)}
    known = sorted((value for value in named if len(value) >= _SHORTEST), key=len, reverse=True)

    def redact(text: str) -> str:
        if len(text) < _SHORTEST:
            return text
        for value in known:
            if value in text:
                text = text.replace(value, MARK)
        secrets = _secrets(text)
        return _without(text, secrets) if secrets else text

    return redact


@dataclass(slots=True)
class _Search:
    """The letters of a rule on their way through a text."""

    rule: _Rule
    letters: bytes
    done: int = 0
    """Up to here nothing is left to find."""

    def secrets(self, text: str, piece: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Secrets whose letters stand in a piece of the text, which begins at `start`."""
        pattern, before = self.rule.pattern, self.rule.before
        place = piece.find(self.letters, max(self.done - start, 0))
        while place >= 0:
            at = start + place
            match = pattern.match(text, at - before) if at >= before else None
            if match:
                yield (match.end(1) if pattern.groups else match.start()), match.end()
            self.done = match.end() if match else self._passed(text, at)
            place = piece.find(self.letters, self.done - start)

    def _passed(self, text: str, at: int) -> int:
        """Where to look on after letters that begin no secret."""
        word = self.rule.word.match(text, at) if self.rule.word else None
        return word.end() if word else at + 1


def _secrets(text: str) -> list[tuple[int, int]]:
    """From where to where each secret stands, in order."""
    searches: dict[int, _Search] = {}
    found: list[tuple[int, int]] = []
    for start in range(0, len(text), _PIECE):
        # One byte for a character, whichever it is, so that places are those of the text.
        piece = text[start : start + _PIECE + _LONGEST - 1].encode("ascii", "replace")
        lower = piece.lower()
        for number, (letters, rule) in enumerate(_LETTERS_OF_RULES):
            looked_at = lower if rule.any_case else piece
            if letters in looked_at:
                search = searches.setdefault(number, _Search(rule, letters))
                found += search.secrets(text, looked_at, start)
    return sorted([*found, *published_secrets(text)])


def _without(text: str, secrets: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in secrets:
        if start >= done:
            parts += (text[done:start], MARK)
        done = max(done, end)
    return "".join([*parts, text[done:]])
