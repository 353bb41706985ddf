"""Names that tell one rank from the others."""

from __future__ import annotations

import ast

import pytest

from torchstone.sources.project import Project, parse
from torchstone.sources.ranks import is_rank_test
from torchstone.sources.source import Source


def asked(test: str, setup: str = "") -> bool:
    source = Source("sample.py", f"import os\nimport torch.distributed as dist\n{setup}\n{test}\n")
    tree = parse(source)
    assert isinstance(tree, ast.Module)
    scene = Project().scene(source, tree)
    last = scene.root.body[-1]
    assert isinstance(last, ast.Expr)
    return is_rank_test(scene, last.value)


@pytest.mark.parametrize(
    "test",
    [
        "rank == 0",
        "not dist.get_rank()== 0",
        "is_main_process()",
        "trainer.is_world_process_zero()",
        "self.is_local_process_zero",
        "trainer.is_global_zero",
        "accelerator.is_main_process",
        "args.local_rank in [-1, 0]",
        "int(os.environ['RANK']) == 0",
    ],
)
def test_what_differs_between_ranks(test: str) -> None:
    assert asked(test)


@pytest.mark.parametrize(
    "test",
    ["rank is None", "local_rank == -1", "dist.is_initialized()", "world_size > 1", "is_ready()"],
)
def test_what_is_the_same_on_all(test: str) -> None:
    assert not asked(test)
