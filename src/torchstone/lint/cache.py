"""What a file gave last time, by its content; kept outside the user's tree."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import TorchstoneError
from torchstone.core.files import cache_folder, write_atomically
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.lint.facts.lending import Loan, loan
from torchstone.lint.result import Result

_FORMAT = 2


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder is gone
        return ""


class Cache:
    """Results of one set of paths under one set of rules.

    A file that other files had a say in counts only while all of them are as they were.
    """

    def __init__(self, folder: Path | None, paths: list[str], basis: str, enabled: bool) -> None:
        key = "|".join(sorted(os.path.realpath(path) for path in paths)) + "|" + _here()
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20]
        self._file = (folder or cache_folder()) / f"check-{name}.json"
        self._basis = basis
        self._enabled = enabled
        self._hashes: dict[str, str] = {}
        self._all = ""
        self._tops: set[str] = set()
        self._lending = ""
        self._was = ""
        self._loans: dict[str, list[Loan]] = {}
        self._old: dict[str, Any] = self._load() if enabled else {}
        self._new: dict[str, Any] = {}
        self._changed = False

    def _load(self) -> dict[str, Any]:
        try:
            data = json.loads(self._file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(data, dict) or data.get("basis") != self._basis:
            return {}
        self._was = str(data.get("lending"))
        files = data.get("files")
        return files if isinstance(files, dict) and data.get("format") == _FORMAT else {}

    def note(self, name: str, data: bytes) -> None:
        """Remember what a file holds now."""
        if self._enabled:
            self._hashes[name] = hashlib.blake2b(data, digest_size=16).hexdigest()

    def loans(self, name: str) -> list[Loan] | None:
        """What the functions of a file lent last time, if it still is as it was."""
        row = self._old.get(name)
        if not isinstance(row, dict) or row.get("hash") != self._hashes.get(name):
            return None
        kept = row.get("loans", {})
        if not isinstance(kept, dict) or not all(
            isinstance(words, list) for words in kept.values()
        ):
            return None
        return [loan(name, function, map(str, words)) for function, words in kept.items()]

    def lend(self, name: str, loans: list[Loan]) -> None:
        """Keep what the functions of a file lend."""
        self._loans[name] = loans

    def seal(self, tops: set[str], lending: str) -> None:
        """All files are noted: the project as a whole has an identity too. What functions lend
        decides which rules run where: if that changed, nothing is known."""
        self._lending = lending
        if self._was != lending:
            self._old = {}
        whole = hashlib.blake2b(digest_size=16)
        for name, digest in sorted(self._hashes.items()):
            whole.update(f"{name}\0{digest}\n".encode("utf-8", "surrogatepass"))
        self._all, self._tops = whole.hexdigest(), tops

    def get(self, name: str) -> Result | None:
        row = self._old.get(name)
        if not isinstance(row, dict) or row.get("hash") != self._hashes.get(name):
            return None
        if row.get("project") not in (None, self._all):
            return None
        try:
            if not self._tops.isdisjoint(row.get("missing", ())):
                return None
            result = Result(
                [from_data(Finding, item, "cache") for item in row.get("findings", ())],
                [from_data(Gap, item, "cache") for item in row.get("gaps", ())],
                int(row["lines"]),
            )
        except (TorchstoneError, KeyError, TypeError, ValueError, OverflowError):
            return None  # written by somebody else: read the file anew
        self._new[name] = row
        return result

    def put(self, name: str, result: Result) -> None:
        """Keep what a file gave, unless reading it failed: that may fix itself."""
        if not self._enabled or name in self._new or name not in self._hashes:
            return
        if any(gap.reason.id in ("source.unreadable", "rule.failed") for gap in result.gaps):
            return
        row: dict[str, Any] = {"hash": self._hashes[name], "lines": result.lines}
        if result.shared:
            row["project"] = self._all
        if result.missing:
            row["missing"] = sorted(result.missing)
        if result.findings:
            row["findings"] = [to_data(item) for item in result.findings]
        if self._loans.get(name):
            row["loans"] = {
                item.name.decode(): sorted(word.decode() for word in item.words)
                for item in self._loans[name]
            }
        if result.gaps:
            row["gaps"] = [to_data(item) for item in result.gaps]
        self._new[name] = row
        self._changed = True

    def save(self) -> None:
        """Write the cache; a folder that cannot be written costs speed, not results."""
        if not self._changed:
            return
        data = {
            "format": _FORMAT, "basis": self._basis, "lending": self._lending, "files": self._new,
        }  # fmt: skip
        try:
            write_atomically(self._file, json.dumps(data, ensure_ascii=False))
        except (TorchstoneError, UnicodeEncodeError):
            return
