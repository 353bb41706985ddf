"""Which calls every rank must make together."""

from __future__ import annotations

import ast
import inspect

import pytest
import torch.distributed
import torch.distributed.checkpoint.state_dict

from torchstone.lint.knowledge.collectives import _DIST, _GROUP_AT, STATE, collective
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def asked(line: str) -> tuple[str, bool] | None:
    text = f"import torch.distributed as dist\nimport torch.distributed.checkpoint as dcp\n{line}\n"
    source = Source("sample.py", text)
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    scene: Scene = Project().scene(source, tree)
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    assert isinstance(last.value, ast.Call)
    found = collective(scene, last.value)
    return (found.name, found.world) if found else None


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("dist.all_reduce(x)", ("all_reduce", True)),
        ("dist.all_reduce(x, group=None)", ("all_reduce", True)),
        ("dist.all_reduce(x, group=dist.group.WORLD)", ("all_reduce", True)),
        ("dist.all_reduce(x, group=tp)", ("all_reduce", False)),
        ("dist.all_reduce(x, dist.ReduceOp.SUM, g0)", ("all_reduce", False)),
        ("dist.barrier(pair)", ("barrier", False)),
        ("dist.new_group([0, 1])", ("new_group", True)),
        ("dist.send(x, 1)", None),
        ("dist.isend(x, 1)", None),
        ("dcp.save(state, checkpoint_id=path)", ("save", True)),
        ("dcp.save(state, checkpoint_id=path, no_dist=True)", None),
        ("self.accelerator.gather(x)", ("gather", True)),
        ("accelerator.unwrap_model(x)", None),
        ("table.gather(x)", None),
    ],
)
def test_what_waits_for_other_ranks(line: str, answer: tuple[str, bool] | None) -> None:
    assert asked(line) == answer


@pytest.mark.parametrize("name", _DIST)
def test_names_are_those_of_the_installed_torch(name: str) -> None:
    function = getattr(torch.distributed, name)
    if name in _GROUP_AT:
        names = list(inspect.signature(function).parameters)
        assert names.index("group") == _GROUP_AT[name]


@pytest.mark.parametrize("name", STATE)
def test_state_functions_exist(name: str) -> None:
    assert callable(getattr(torch.distributed.checkpoint.state_dict, name))
