"""What the precision rules ask of the sources: dtypes in branches, autocast calls, words."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchstone.sources.discover import File
from torchstone.sources.project import Project
from torchstone.sources.regions import autocast_call
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str) -> Scene:
    return Project().scene(Source("sample.py", text), ast.parse(text))


def last_argument(scene: Scene) -> ast.expr:
    return scene.calls["use"][-1].args[0]


@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        ("    x = x.half()\n    use(x)\n", "float16"),
        ("    if small:\n        x = x.half()\n    use(x)\n", ""),
        ("    if small:\n        x = x.half()\n        use(x)\n", "float16"),
        ("    if small:\n        x = x.half()\n    else:\n        use(x)\n", ""),
        ("    for i in small:\n        x = x.half()\n    use(x)\n", ""),
        ("    x = x.half()\n    if small:\n        use(x)\n", "float16"),
        ("    try:\n        x = x.half()\n    except E:\n        pass\n    use(x)\n", ""),
    ],
)
def test_a_dtype_is_known_only_where_no_branch_leaves_it_open(body: str, dtype: str) -> None:
    scene = scene_of(f"import torch\n\ndef f(x, small):\n{body}")
    assert scene.dtype(last_argument(scene)) == dtype


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("x.long() + 1", "int64"),
        ("x.long() + 0.5", ""),
        ("x.long() / 2", ""),
        ("x.half() / 2", "float16"),
        ("0.5 * x.half()", "float16"),
        ("x.bool().sum()", "int64"),
        ("x.long().exp()", ""),
        ("x.half().exp()", "float16"),
        ("torch.sum(x.bool())", "int64"),
    ],
)
def test_arithmetic_changes_whole_numbers_but_not_half(expression: str, dtype: str) -> None:
    scene = scene_of(f"import torch\nuse({expression})\n")
    assert scene.dtype(last_argument(scene)) == dtype


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('torch.autocast("cuda")', ("cuda", "float16", True)),
        ('torch.autocast("cuda", dtype=torch.bfloat16)', ("cuda", "bfloat16", True)),
        ('torch.autocast("cpu")', ("cpu", "bfloat16", True)),
        ('torch.autocast("cuda", enabled=flag)', ("cuda", "float16", False)),
        ("torch.cuda.amp.autocast()", ("cuda", "float16", True)),
        ('torch.autocast("cuda", enabled=False)', None),
        ("torch.cuda.amp.autocast(False)", None),
        ("torch.tensor(3)", None),
    ],
)
def test_what_an_autocast_call_opens(call: str, expected: tuple[str, str, bool] | None) -> None:
    scene = scene_of(f"import torch\nx = {call}\n")
    found = autocast_call(scene, scene.all(ast.Call)[0])
    assert (found and (found.device, found.dtype, found.certain)) == expected


def test_a_project_knows_the_words_of_all_its_files(tmp_path: Path) -> None:
    files = []
    for name, text in (("a.py", "import torch\n"), ("b.py", "with autocast(): pass\n")):
        (tmp_path / name).write_text(text)
        files.append(File(tmp_path / name, name))
    project = Project(files)
    assert project.mentions("autocast")
    assert project.shared, "another file had a say, so the cache must look at all of them"
    assert not project.mentions("GradScaler")
