"""What changed since a commit, asked of git without running anything the repository configures."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from torchstone.core.errors import InputError, UsageError
from torchstone.core.pattern import pattern
from torchstone.core.text import Text

# a hostile repository may name programs in its configuration: none of them is run
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat",
         "-c", "core.quotePath=false", "-c", "protocol.allow=never", "-c", "diff.submodule=short",
         "-c", "submodule.recurse=false")  # fmt: skip
_HUNK = pattern(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(commit: str, folder: Path) -> dict[str, set[int] | None]:
    """Absolute path → lines added or changed since the commit; None is a wholly new file."""
    if commit.startswith("-"):
        raise UsageError("--since", repr(commit), *_commit_texts())
    top = Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    try:
        _git(folder, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except InputError:
        raise InputError("--since", repr(commit), *_commit_texts()) from None
    base = _git(folder, "merge-base", commit, "HEAD").strip() or commit
    out = _git(top, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", "--no-prefix",
               "--relative", "--ignore-submodules=all", base, "--", settings=_no_filters(top))  # fmt: skip
    lines = _read_diff(out, top)
    for name in _git(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if name:
            lines[str(top / name)] = None
    return lines


def git_state(folder: Path) -> tuple[str, int]:
    """The commit that is checked out, and how many files of the folder differ from it."""
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD").strip()
    top = Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    rows = _git(top, "status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all", "--",
                str(folder.resolve()), settings=_no_filters(top))  # fmt: skip
    return commit, len([row for row in rows.split("\0") if row])


def _no_filters(top: Path) -> list[tuple[str, str]]:
    """Settings that switch off every filter the repository's configuration names."""
    try:
        names = _git(top, "config", "--name-only", "-z", "--get-regexp", r"^filter\.")
    except InputError:
        return []  # none is set
    return [
        (name, "false" if name.endswith(".required") else "")
        for name in filter(None, names.split("\0"))
    ]


def _read_diff(out: str, top: Path) -> dict[str, set[int] | None]:
    lines: dict[str, set[int] | None] = {}
    current: set[int] | None = None
    header = False
    for row in out.split("\n"):
        if row.startswith("diff --git "):
            header, current = True, None
        elif header and row.startswith("+++ "):
            name = _unquoted(row[4:].rstrip("\t"))
            current = set()
            if name != "/dev/null":
                lines[str(top / name)] = current
        elif match := _HUNK.match(row):
            header = False
            if current is not None:
                start, count = int(match[1]), int(match[2] or 1)
                current.update(range(start, start + count))
    return lines


def _unquoted(name: str) -> str:
    """Git writes unusual names as C strings."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    raw = name[1:-1].encode("utf-8", "surrogateescape").decode("latin-1")
    return (
        raw.encode("latin-1")
        .decode("unicode_escape")
        .encode("latin-1")
        .decode("utf-8", "surrogateescape")
    )


def _commit_texts() -> tuple[Text, Text]:
    return (
        Text("a commit of this repository", "本仓库的一个提交"),
        Text("see `git log --oneline`", "参见 `git log --oneline`"),
    )


def _environment(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings by variable: a name may hold any character. Missing objects are not fetched."""
    found = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _git(folder: Path, *words: str, settings: Sequence[tuple[str, str]] = ()) -> str:
    try:
        done = subprocess.run(
            ("git", *_SAFE, *words), cwd=folder, env=_environment(settings), capture_output=True, text=True, errors="surrogateescape", encoding="utf-8",
            timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            "--since",
            str(error),
            Text("a working git", "可用的 git"),
            Text("install git, or leave --since away", "请安装 git，或去掉 --since"),
        ) from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise InputError("--since", said[-1] if said else "no answer from git", *_commit_texts())
    return done.stdout
