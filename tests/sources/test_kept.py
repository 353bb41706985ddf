"""Which parsed files stay at hand."""

from __future__ import annotations

import ast

import pytest

from torchstone.sources import kept as module
from torchstone.sources.kept import Kept
from torchstone.sources.project import Project
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene(size: int) -> Scene:
    text = "#" * size
    return Project().scene(Source("a.py", text), ast.parse(text))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr(module, "_ASKED_FOR", 30)
    monkeypatch.setattr(module, "_ONLY_READ", 10)
    return Kept()


def there(kept: Kept, names: str) -> str:
    return "".join(name for name in names if kept.get(name) is not None)


def test_files_that_were_only_read_go_first(kept: Kept) -> None:
    for name in "abc":
        kept.put(name, scene(5))
    assert there(kept, "abc") == "bc"
    assert kept.ask("b")
    assert not kept.ask("a")
    kept.put("d", scene(5))
    kept.put("e", scene(5))
    assert there(kept, "abcde") == "bde", "what was asked for stays, and makes room for others"


def test_of_those_that_were_asked_for_the_last_stay(kept: Kept) -> None:
    for name in "abcd":
        kept.ask(name)
        kept.put(name, scene(10))
        kept.ask("a")
    assert there(kept, "abcd") == "acd"


def test_one_file_is_kept_however_large(kept: Kept) -> None:
    kept.put("a", scene(100))
    assert there(kept, "a") == "a"
    kept.put("b", scene(1))
    assert there(kept, "ab") == "b"


def test_a_file_that_does_not_parse_is_known_to_be_none(kept: Kept) -> None:
    kept.ask("a")
    kept.put("a", None)
    assert kept.ask("a")
    assert kept.get("a") is None


def test_a_file_that_is_put_again_counts_once(kept: Kept) -> None:
    for _ in range(5):
        kept.put("a", scene(5))
    kept.put("b", scene(5))
    assert there(kept, "ab") == "ab"
    kept.clear()
    assert there(kept, "ab") == ""
    kept.put("a", scene(5))
    kept.put("b", scene(5))
    assert there(kept, "ab") == "ab"
