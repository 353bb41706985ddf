"""Texts, lines, edits, options, errors, atomic files, the registry."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchstone.core.errors import ConfigError, InputError, TorchstoneError, UsageError
from torchstone.core.files import write_atomically
from torchstone.core.fix import Edit, apply_edits, patched
from torchstone.core.lines import split_lines
from torchstone.core.options import from_mapping, option, options_of, options_schema, unknown
from torchstone.core.registry import modules_in, names_in
from torchstone.core.text import Message, Text, fill


def test_texts_are_filled_without_reaching_into_arguments() -> None:
    message = Message("m", Text("{a} and {b.__class__}", "{a}"), {"a": "{b}", "b": "x"})
    assert message.say("en") == "{b} and {b.__class__}"
    assert message.say("zh") == "{b}"


def test_a_missing_argument_stays_visible() -> None:
    assert fill("{a} {b}", {"a": "1"}) == "1 {b}"


@given(st.text(alphabet="ab\r\n\x0c\u2028 "))
def test_lines_join_to_the_text_again(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(
        line.rstrip("\r\n") == line.strip("\r\n") or line.startswith(("\r", "\n")) for line in lines
    )


def test_form_feeds_do_not_end_a_line() -> None:
    assert split_lines("a\x0cb\u2028c\nd") == ["a\x0cb\u2028c\n", "d"]


def edit(line: int, column: int, end_line: int, end_column: int, text: str) -> Edit:
    return Edit("f.py", line, column, end_line, end_column, text)


def test_edits_are_made_in_any_order() -> None:
    text = "abc\ndef\n"
    edits = [edit(2, 0, 2, 1, "X"), edit(1, 1, 1, 2, "YY"), edit(3, 0, 3, 0, "end\n")]
    assert apply_edits(text, edits) == "aYYc\nXef\nend\n"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abc\n", [edit(1, 0, 1, 2, "x"), edit(1, 1, 1, 3, "y")])


@dataclass(frozen=True)
class Sample:
    """Options of a tool that does not exist."""

    names: tuple[str, ...] = option((), "names", "名称")
    level: str = option("low", "level", "级别", choices=("low", "high"))
    count: int = option(3, "count", "数量")
    share: float = option(0.5, "share", "比例")
    once: bool = option(False, "once", "一次", config=False)


def test_options_come_from_the_class() -> None:
    assert [item.flag for item in options_of(Sample)] == [
        "--names",
        "--level",
        "--count",
        "--share",
        "--once",
    ]
    assert from_mapping(Sample, {"names": ["a"], "level": "high", "share": 1}, "x") == {
        "names": ("a",), "level": "high", "share": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"nmaes": []}, "did you mean 'names'"),
        ({"names": "a"}, "a list"),
        ({"level": "mid"}, "one of low, high"),
        ({"count": "3"}, "type int"),
        ({"count": True}, "type int"),
        ({"once": True}, "choose from names"),
    ],
)
def test_bad_options_are_errors_with_four_facts(values: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Sample, values, "pyproject.toml [tool.x]")
    said = str(caught.value)
    assert word in said
    assert said.startswith("pyproject.toml")
    assert ("got" in said and "expected" in said) or "unknown name" in said


def test_agent_schema_of_options() -> None:
    schema = options_schema(Sample)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"level": "high", "names": ["a"]}, schema)
    for wrong in ({"level": "mid"}, {"other": 1}, {"names": "a"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    assert schema["properties"]["count"]["description"] == "count"


def test_errors_speak_both_languages() -> None:
    error = TorchstoneError(
        "cost", "(8, 3)", Text("(N, 3, H, W)", "(N, 3, H, W)"), Text("pass --input", "请传 --input")
    )
    assert str(error) == "cost: got (8, 3), expected (N, 3, H, W); pass --input"
    assert error.say("zh") == "cost：得到 (8, 3)，应为 (N, 3, H, W)；请传 --input"
    assert isinstance(unknown("x", "chek", ["check"]), UsageError)
    assert "check" in unknown("x", "chek", ["check"]).say("zh")


def test_files_are_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "f.txt"
    write_atomically(target, "one")
    write_atomically(target, "二")
    assert target.read_text("utf-8") == "二"
    assert os.listdir(target.parent) == ["f.txt"]


def test_a_rewritten_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    target, link = tmp_path / "run.sh", tmp_path / "link.sh"
    target.write_text("a")
    target.chmod(0o755)
    link.symlink_to(target)
    write_atomically(link, "b")
    assert link.is_symlink()
    assert target.read_text() == "b"
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "f.txt"
    target.write_text("old")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(InputError, match="No space"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_an_unwritable_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        write_atomically(tmp_path / "file" / "below.txt", "x")


def test_registry_finds_files_by_their_folder() -> None:
    names = names_in("torchstone.render.draw")
    assert "snippet" in names
    assert not any(name.startswith("_") for name in names)
    assert [
        module.__name__.rpartition(".")[2] for module in modules_in("torchstone.render.draw")
    ] == names


def test_a_new_file_is_found_with_no_list_to_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "drawer"
    home.mkdir()
    (home / "__init__.py").write_text("")
    (home / "one.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert names_in("drawer") == ["one"]
    (home / "two.py").write_text("VALUE = 2\n")
    (home / "_hidden.py").write_text("VALUE = 3\n")
    assert [module.VALUE for module in modules_in("drawer")] == [1, 2]


@pytest.mark.parametrize(
    ("text", "change", "after"),
    [
        ("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+B\n", "a\nB\nc\n"),
        ("a\nb\n", "@@ -1,0 +2 @@\n+x\n@@ -2 +2,0 @@\n-b\n", "a\nx\n"),
        ("a\nb\n", "@@ -0,0 +1,2 @@\n+x\n+y\n", "x\ny\na\nb\n"),
        ("a\n", "", "a\n"),
    ],
)
def test_a_change_without_context_is_made(text: str, change: str, after: str) -> None:
    assert patched(text, change) == after
