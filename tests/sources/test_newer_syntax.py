"""Syntax of newer Pythons becomes older syntax in which everything else stays at its place."""

from __future__ import annotations

import ast

import pytest

from torchstone.sources.newer_syntax import rewritten

CASES = [
    ("def f[T](x): pass\n", "def f   (x): pass\n"),
    ("class A[T: int, *U]: pass\n", "class A            : pass\n"),
    ("def  g [T](x): pass\n", "def  g [T](x): pass\n"),  # the brackets must follow the name
    ("type X = int\n", "X      = int\n"),
    ("type Pair[T] = tuple[T, T]\n", "Pair         = tuple[T, T]\n"),
    ("type = 3\n", "type = 3\n"),
    ("x = type (y)\n", "x = type (y)\n"),
    ("lazy import torch\n", "import torch     \n"),
    ("lazy from a import b  # late\n", "from a import b       # late\n"),
    ("lazy = 1\n", "lazy = 1\n"),
    ("a = 1; lazy import b\n", "a = 1; import b     \n"),
    ("try: pass\nexcept A, B: pass\n", "try: pass\nexcept A| B: pass\n"),
    ("try: pass\nexcept (A, B): pass\n", "try: pass\nexcept (A, B): pass\n"),
    ("try: pass\nexcept f(A, B), C: pass\n", "try: pass\nexcept f(A, B)| C: pass\n"),
    ('try: pass\nexcept f("a", b), C: pass\n', 'try: pass\nexcept f("a", b), C: pass\n'),
    ("x = f'{a['b']}'\n", "x =  ( a['b'] )\n"),
    ("x = f'{a['b']}{c}'\n", "x =  ( a['b'] ,c )\n"),
    ("x = f'{a['b']!r:>{w}}'\n", "x =  ( a['b']    ,w  )\n"),
    ("x = f'{a['b'] = }'\n", "x =  ( a['b']    )\n"),
    ("x = f'{a['b'] == c}'\n", "x =  ( a['b'] == c )\n"),
    ("x = f'{f'{a}'}'\n", "x =  ( f'{a}' )\n"),
    ("x = t'{a}'\n", "x = f'{a}'\n"),
    ("x = rt'{a}\\d'\n", "x = rf'{a}\\d'\n"),
    ("x = f'{a!r}' 'b'\n", "x = f'{a!r}' 'b'\n"),
    ("x = f'{'a' + b}' f'{c}'\n", "x =  ( 'a' + b ) +( c )\n"),
    ("x = f'{{{a}}}'\n", "x = f'{{{a}}}'\n"),
    ("x = f'\\N{EM DASH}{a}'\n", "x = f'\\N{EM DASH}{a}'\n"),
    ("x = f'{a:%Y-%m}'\n", "x = f'{a:%Y-%m}'\n"),
    ("x = f'{a != b}'\n", "x = f'{a != b}'\n"),
    ("x = 'a' # def f[T]()\n", "x = 'a' # def f[T]()\n"),
    ("x = '''\ndef f[T](): pass\n'''\n", "x = '''\ndef f[T](): pass\n'''\n"),
    ("x = 'a\\'b'; type Y = int\n", "x = 'a\\'b'; Y      = int\n"),
    ("x = (1,\ntype)\n", "x = (1,\ntype)\n"),
    ("def f[\n    T,\n](x): pass\n", "def f\\\n     \\\n (x): pass\n"),
    ("def f[T = 'é'](x): pass\n", "def f          (x): pass\n"),
    ("x = f'''{\n    a  # why\n}'''\n", None),
    ("x = \\\n  f'{a[\"b\"]}'\ntype Z = int\n", "x = \\\n  f'{a[\"b\"]}'\nZ      = int\n"),
]


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_what_is_new_is_replaced(text: str, wanted: str | None) -> None:
    found = rewritten(text)
    if wanted is not None:
        assert found == wanted
    assert [len(row.encode()) for row in found.splitlines()] == [
        len(row.encode()) for row in text.splitlines()
    ]
    if " [T]" not in text and '"a"' not in text:
        ast.parse(found)


@pytest.mark.parametrize(
    "text",
    [
        "x = f'{a['b']\n",  # a string that does not end
        "x = 'abc\n",
        "def f[T(x): pass\n",
        "x = f'{a'b'}\n",
        "type X[T = int\n",
        "x = f'{a!'\n",
    ],
)
def test_what_is_no_python_stays_as_it_is(text: str) -> None:
    assert rewritten(text) == text


def test_places_of_everything_else_stay() -> None:
    text = "def f[T](a): return f'{a['b']}', a.c\ntype X = int\ny = f(1)\n"
    tree = ast.parse(rewritten(text))
    places = {
        node.attr if isinstance(node, ast.Attribute) else node.func.id: (
            node.lineno,
            node.col_offset,
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    }
    assert places == {"c": (1, text.index("a.c")), "f": (3, 4)}
