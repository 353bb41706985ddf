from __future__ import annotations

import ast

from torchstone.sources.tree import Tree


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
