"""Names that come from outside, made safe for file names: they never leave their folder."""

from __future__ import annotations

import hashlib
import re

_MOST_BYTES = 96
_UNSAFE = re.compile(r"[^\w\-.+]", re.UNICODE)
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$")


def safe_name(name: str) -> str:
    """The name itself where it is safe; else a readable form of it with a hash, so that two
    names never become one."""
    plain = _UNSAFE.sub("_", name).lstrip(".").rstrip(". ")
    short = plain.encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore")
    if short == name and name and not _RESERVED.match(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{short or 'op'}-{mark}"
