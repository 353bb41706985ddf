"""What the files of a folder state, each format read by its own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.sources.requirements import stated_in
from torchstone.sources.versions import (
    is_kept_below,
    parse_version,
    project_torch,
    torch_requirement,
)

FILES: list[tuple[str, str, list[str]]] = [
    ("requirements.txt", "torch==1.0  # why\n-r other\n# torch\nnumpy --hash=1\n\n",
     ["torch==1.0", "numpy"]),
    ("dev-requirements.txt", "torch >= 2, \\\n  < 3\n", ["torch >= 2,    < 3"]),
    ("requirements-gpu.in", "torch~=2.1\n", ["torch~=2.1"]),
    ("constraints.txt", "torch<2\n", ["torch<2"]),
    ("requirements/train.txt", "torch\n", ["torch"]),
    ("pyproject.toml", ('[project]\ndependencies = ["torch>=2", 3]\n'
     '[project.optional-dependencies]\na = ["numpy"]\n[dependency-groups]\nb = ["scipy"]\n'),
     ["torch>=2", "numpy", "scipy"]),
    ("pyproject.toml", ('[tool.poetry.dependencies]\ntorch = "^1.12"\nnumpy = {version = "~1.2"}\n'
     'scipy = "*"\n[tool.poetry.dev-dependencies]\na = "1.0"\n[tool.poetry.group.x.dependencies]\nb = ">=2"\n'
     '[tool.pixi.dependencies]\nc = "~=3.1"\nd = {path = "x"}\ne = 3\nf = "^x"\n'),
     ["torch>=1.12,<2", "numpy==1.2.*", "scipy", "a==1.0", "b>=2", "c~=3.1", "d", "f"]),
    ("pyproject.toml", "torch = [", []),
    ("Pipfile", '[packages]\ntorch = "==1.2"\n[dev-packages]\na = "*"\n', ["torch==1.2", "a"]),
    ("environment.yml", ("dependencies:\n  - pytorch::pytorch=1.12.1=py3.9\n  - python>=3.9\n"
     "  - pytorch-cuda=11.7\n  - numpy 1.2\n  - scipy\n  - a ==1.0\n  - b >=2\n  - pip:\n    - torchvision\n"),
     ["torch==1.12.1.*", "python>=3.9", "pytorch-cuda==11.7.*", "numpy==1.2.*", "scipy", "a==1.0",
      "b>=2", "torchvision"]),
    ("environment.yaml", "torch: [", []),
    ("conda.yaml", "- torch", []),
    ("meta.yaml", "dependencies:\n- pytorch 2.*\n", ["torch==2.*"]),
    ("setup.cfg", "[options]\ninstall_requires =\n  torch>=1\n[options.extras_require]\nx =\n  numpy\n",
     ["torch>=1", "numpy"]),
    ("setup.cfg", "torch", []),
    ("setup.py", "setup(install_requires=['torch>1'], name='torchy', x=3)\n", ["torch>1", "torchy"]),
    ("setup.py", "torch(", []),
    ("Dockerfile", ("FROM docker.io/pytorch/pytorch:1.9.0-cuda\nRUN pip install torch==1.10 && conda install \\\n"
     " pytorch=1.11\nRUN echo torch\n"), ["torch==1.9.*", "torch==1.10", "torch==1.11.*"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "wanted"), FILES)
def test_a_file_states(name: str, text: str, wanted: list[str], tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    found = sorted(stated_in(tmp_path, "torch"))
    assert found == sorted(wanted)
    assert list(stated_in(tmp_path, "jax")) == []


def test_lists_alone(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("setup(name='torchy', install_requires=['torch>1', x])\n")
    (tmp_path / "Dockerfile").write_text("RUN pip install torch\n")
    (tmp_path / "requirements.txt").write_text("torch\n")
    assert sorted(stated_in(tmp_path, "torch", listed_only=True)) == ["torch", "torch>1"]


def test_a_folder_that_is_not_there_states_nothing(tmp_path: Path) -> None:
    assert list(stated_in(tmp_path / "none", "torch")) == []


@pytest.mark.parametrize(
    ("text", "version"),
    [("2.1", (2, 1)), (" v1.13.1+cu", (1, 13)), ("2", None), ("x2.1", None), ("12345.1", None)],
)
def test_versions(text: str, version: tuple[int, int] | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("lines", "oldest", "is_open"),
    [
        ("torch>=1.8", (1, 8), True),
        ("torch==1.12.*", (1, 12), False),
        ("torch~=2.1", (2, 1), False),
        ("torch>=1.8,<2", (1, 8), False),
        ("torch>=1.8,<=2", (1, 8), False),
        ("torch>1.8,>=1.10", (1, 10), True),
        ("torch>=1.8\ntorch==2.0", (1, 8), False),
        ("torch", None, None),
        ("torch<2", None, None),
        ("torchvision==0.1", None, None),
        ("torch==x", None, None),
        ("torch===1.9", (1, 9), False),
    ],
)
def test_what_a_project_says_of_torch(
    lines: str, oldest: tuple[int, int] | None, is_open: bool | None, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text(lines)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_torch(inner) == oldest
    found = torch_requirement(inner)
    assert (found.open if found else None) == is_open


def test_how_far_up_requirements_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.8")
    deep = tmp_path / "a" / "b" / "c"
    (deep / "d").mkdir(parents=True)
    assert project_torch(deep) == (1, 8)
    assert project_torch(deep / "d") is None
    (tmp_path / "a" / ".git").mkdir()
    assert project_torch(deep) is None, "a repository ends where its .git is"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("numpy<2", True), ("numpy<=1.26", True), ("numpy==1.26.*", True), ("numpy~=1.2", True),
        ("numpy>=1", False), ("numpy<3", False), ("numpy==2.1", False), ("numpy", False),
        ("numpydoc<2", False), ("numpy<x", False), ("scipy<2", False),
    ],
)  # fmt: skip
def test_whether_a_package_is_kept_below_a_release(text: str, kept: bool, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "requirements.txt").write_text(text)
    (tmp_path / "a").mkdir()
    assert is_kept_below(tmp_path / "a", "numpy", "2.0") is kept
