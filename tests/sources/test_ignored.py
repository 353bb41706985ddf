"""Patterns of a .gitignore are tried only on paths that hold their fixed part: no verdict changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from torchstone.sources import discover

_LINES = (
    "build", "*.py", "*.py[cod]", "!keep.py", "/out/", "a?b", "**/x", "docs/**", "x/**/y.py", "# note",
    "  ", "foo bar", "data/", "!data/a.py", "*", "!*.py", "[ab].py", "\\#x", "lib/*.py", "**", "/**/z",
    "foo*bar", "!/lib/a.py", "keep.py  ", "\\!x",
)  # fmt: skip
_NAMES = (
    "build", "a.py", "keep.py", "out", "aXb", "x", "docs", "y.py", "foo bar", "data", "lib", "z",
    "fooXbar.py", "b.py", "#x", "c.pyc", "!x",
)  # fmt: skip


@given(
    st.lists(st.sampled_from(_LINES), min_size=1, max_size=8),
    st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4),
    st.booleans(),
)
def test_the_verdict_is_that_of_all_patterns(
    lines: list[str], names: list[str], folder: bool
) -> None:
    path = "/".join(names)
    patterns = tuple((discover._literal(line), line) for line in lines if line.strip())
    ignore = discover._Ignore("/top", patterns)
    whole = GitIgnoreSpec.from_lines(lines).check_file(path + "/" * folder).include
    assert discover._ignored((ignore,), f"/top/{path}", folder) is bool(whole)
