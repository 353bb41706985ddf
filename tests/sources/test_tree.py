from __future__ import annotations

import ast

from torchstone.sources.tree import Tree, below, children, inside


def test_every_pattern_of_a_match_statement_can_be_walked() -> None:
    source = """\
match x:
    case True | False | None:
        a = 1
    case {"k": 1, **rest}:
        b = 2
    case [1, *others] if others:
        c = 3
    case Point(x=0) as p:
        d = 4
    case _:
        e = 5
"""
    tree = Tree(ast.parse(source))
    assert len(tree.by_type[ast.Assign]) == 5


NESTED = "def f(a=g(1)):\n    x = h(lambda: i())\n    def j():\n        k()\n    class L:\n        m()\n    n()\n"


def names(nodes: list[ast.AST]) -> list[str]:
    return [
        node.func.id
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def test_what_stands_in_a_function() -> None:
    function = ast.parse(NESTED).body[0]
    assert names(inside(function)) == ["g", "h", "i", "k", "m", "n"]
    assert inside(function)[0] is function
    assert sorted(names(below(function))) == ["g", "h", "n"]
    kinds = {type(node) for node in below(function)}
    assert {ast.Lambda, ast.FunctionDef, ast.ClassDef} <= kinds, (
        "the inner ones, not what they hold"
    )


def test_the_nodes_right_below_a_node() -> None:
    [call] = [node for node in ast.walk(ast.parse("f(a, *b, k=c)")) if isinstance(node, ast.Call)]
    assert [type(node) for node in children(call)] == [ast.Name, ast.Name, ast.Starred, ast.keyword]
    assert children(ast.Pass()) == []


def test_parents_and_nodes_by_type() -> None:
    tree = Tree(ast.parse(NESTED))
    calls = tree.by_type[ast.Call]
    assert sorted(names(calls)) == ["g", "h", "i", "k", "m", "n"]
    [inner] = [call for call in calls if names([call]) == ["k"]]
    up = tree.parents[tree.parents[inner]]
    assert isinstance(up, ast.FunctionDef)
    assert up.name == "j"
    assert tree.root not in tree.parents
