"""Texts, spans and edits of a file as it is written."""

from __future__ import annotations

import ast

import pytest

from tests.sources.test_scene import scene_of
from torchstone.core.fix import Edit, apply_edits
from torchstone.sources.scene import Scene

TEXT = "é = f(\n    'ü', b)\nif a:\n    g(1)  # why\n    h()\nelse:\n    i()\nj(); k()\nm()"


@pytest.fixture
def scene() -> Scene:
    return scene_of(TEXT)


def call(scene: Scene, name: str) -> ast.Call:
    [found] = scene.calls[name]
    return found


def after(edit: Edit | None) -> str:
    assert edit is not None
    return apply_edits(TEXT, [edit])


def test_spans_count_characters(scene: Scene) -> None:
    assert scene.span(call(scene, "f")) == (1, 4, 2, 11)
    assert scene.span(ast.Name("x")) == (1, 0, 1, 0)
    assert scene.text(call(scene, "f")) == "f(\n    'ü', b)"
    assert scene.text(call(scene, "f").args[0]) == "'ü'"


def test_a_long_text_is_shortened_in_the_middle(scene: Scene) -> None:
    assert scene.brief(call(scene, "f")) == "f( 'ü', b)"
    long = scene_of("function_name(argument_one, argument_two, argument_three)")
    words = long.brief(call(long, "function_name"))
    assert len(words) == 48
    assert words == "function_name(argument_one, argument … nt_three)"


def test_edits(scene: Scene) -> None:
    g, f = call(scene, "g"), call(scene, "f")
    assert after(scene.replace(g, "x")) == TEXT.replace("g(1)", "x")
    assert after(scene.insert_before(g, "await ")) == TEXT.replace("g(1)", "await g(1)")
    assert after(scene.insert_after(g, ".y")) == TEXT.replace("g(1)", "g(1).y")
    assert after(scene.replace_between(f.args[0], f.args[1], "!")) == TEXT.replace("'ü', b", "'ü'!")
    statement = scene.statement(g)
    assert statement is not None
    assert after(scene.insert_line_before(statement, "x()")) == TEXT.replace(
        "    g(1)", "    x()\n    g(1)"
    )
    assert after(scene.insert_line_after(statement, "x()")) == TEXT.replace(
        "# why", "# why\n    x()"
    )
    last = scene.root.body[-1]
    assert after(scene.insert_line_after(last, "x()")) == TEXT + "\nx()"


@pytest.mark.parametrize(("name", "wanted"), [
    ("g", TEXT.replace("    g(1)  # why\n", "")), ("i", TEXT.replace("i()", "pass")),
    ("m", TEXT.removesuffix("m()")), ("j", None), ("k", None),
])  # fmt: skip
def test_a_statement_is_deleted_where_it_has_its_lines_to_itself(
    scene: Scene, name: str, wanted: str | None
) -> None:
    statement = scene.statement(call(scene, name))
    assert statement is not None
    edit = scene.delete_line(statement)
    assert edit is None if wanted is None else after(edit) == wanted


@pytest.mark.parametrize(("text", "wanted"), [
    ("f()", "f(k=1)"), ("f(a)", "f(a, k=1)"), ("f(a, b=2)", "f(a, b=2, k=1)"), ("f((a))", "f((a), k=1)"),
    ("f(a,)", "f(a, k=1,)"), ("f(\n    a,\n)", "f(\n    a, k=1,\n)"), ("f((a)  # b\n)", "f((a), k=1  # b\n)"),
    ("f(b=(2), *a)", "f(b=(2), *a, k=1)"),
])  # fmt: skip
def test_a_keyword_is_added_behind_the_last_argument(text: str, wanted: str) -> None:
    scene = scene_of(text)
    assert apply_edits(text, [scene.add_keyword(call(scene, "f"), "k=1")]) == wanted


def test_lines_end_as_those_around_them() -> None:
    text = "a()\r\nb()\r\n"
    scene = scene_of(text)
    first = scene.root.body[0]
    assert apply_edits(text, [scene.insert_line_before(first, "x()")]) == "x()\r\na()\r\nb()\r\n"
    assert apply_edits(text, [scene.insert_line_after(first, "x()")]) == "a()\r\nx()\r\nb()\r\n"
