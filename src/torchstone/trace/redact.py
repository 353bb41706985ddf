"""Secrets are taken out before anything is hashed or written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

MARK = "[redacted]"
_SHORTEST = 8
_NAMED = re.compile(r"(?i)(key|token|secret|passw|credential)")
# Every repetition is bounded or gives nothing back, so that time grows with the length of the text.
_PATTERNS = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        re.S,
    ),
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}+"),
    re.compile(r"\b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|hf|xox[abprs])[_-][A-Za-z0-9_\-]{16,}+"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bAIza[A-Za-z0-9_\-]{30,}+"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,2000}+\.[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+"),
)
_AFTER = (
    re.compile(r"(?i)(\b(?:authorization|proxy-authorization)\s{0,9}+[:=]\s{0,9}+(?:(?:bearer|basic|token)\b\s{0,9}+)?)\S++"),
    re.compile(r"(?i)(\bbearer\s{1,9}+)[A-Za-z0-9._~+/\-]{12,}+=*+"),
    re.compile(r"(?i)((?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token)\b[\"']?\s{0,9}+[:=]\s{0,9}+[\"']?)[^\s\"',;}]{8,}+"),
    re.compile(r"(://[^/\s:@]{1,200}+:)[^@\s/]{1,500}+(?=@)"),
)  # fmt: skip


def redactor(environment: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """A function that takes secrets out of a text: those of the environment, and what looks
    like one."""
    values = environment if environment is not None else os.environ
    known = sorted(
        {v for k, v in values.items() if _NAMED.search(k) and len(v) >= _SHORTEST and " " not in v},
        key=len,
        reverse=True,
    )

    def redact(text: str) -> str:
        for value in known:
            if value in text:
                text = text.replace(value, MARK)
        for pattern in _PATTERNS:
            text = pattern.sub(MARK, text)
        for pattern in _AFTER:
            text = pattern.sub(lambda match: match[1] + MARK, text)
        return text

    return redact
