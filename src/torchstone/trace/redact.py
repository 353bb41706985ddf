"""Secrets are taken out before anything is hashed or written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

MARK = "[redacted]"
_SHORTEST = 8
_NAMED = re.compile(r"(?i)(key|token|secret|passw|credential)")
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
    re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{16,}"),
    re.compile(r"\b(?:ghp|gho|ghu|ghs|ghr|github_pat|glpat|hf|xox[abprs])[_-][A-Za-z0-9_\-]{16,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bAIza[A-Za-z0-9_\-]{30,}"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
)
_AFTER = (
    re.compile(r"(?i)(\b(?:authorization|proxy-authorization)\s*[:=]\s*(?:bearer|basic|token)?\s*)\S+"),
    re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/\-]{12,}=*"),
    re.compile(r"(?i)([\"']?\b[\w-]*(?:api[_-]?key|secret|passw(?:or)?d|access[_-]?token)\b[\"']?\s*[:=]\s*[\"']?)[^\s\"',;}]{8,}"),
    re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*://[^/\s:@]+:)[^@\s/]+(?=@)"),
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
