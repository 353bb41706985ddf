"""Files, folders, notebooks and git: what is read, and what bad input does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.core.fix import Edit
from torchstone.core.gap import Gap
from torchstone.sources.discover import discover
from torchstone.sources.git import changed_lines
from torchstone.sources.notebook import edit_notebook, plain_python, read_notebook
from torchstone.sources.source import decode
from torchstone.sources.versions import project_torch


def names(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    files, gaps = discover(paths, exclude)
    assert not gaps
    return [file.name for file in files]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "a.py",
        "b.txt",
        "pkg/c.py",
        "pkg/d.ipynb",
        "build/e.py",
        ".venv/lib/f.py",
        "env2/g.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}" if name.endswith("ipynb") else "x = 1\n")
    (tmp_path / "env2" / "pyvenv.cfg").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_are_walked_without_environments(tree: Path) -> None:
    assert names(".") == ["a.py", "build/e.py", "pkg/c.py", "pkg/d.ipynb"]


def test_gitignore_is_honoured_as_git_does(tree: Path) -> None:
    (tree / ".gitignore").write_text("build/\n*.ipynb\n!pkg/d.ipynb\n")
    (tree / "pkg" / ".gitignore").write_text("c.py\n")
    assert names(".") == ["a.py", "pkg/d.ipynb"]


def test_gitignore_above_the_folder_counts(tree: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".gitignore").write_text("c.py\n")
    assert names("pkg") == ["pkg/d.ipynb"]


def test_a_file_that_is_named_is_read_even_if_ignored(tree: Path) -> None:
    (tree / ".gitignore").write_text("build/\n")
    assert names("build/e.py") == ["build/e.py"]


def test_exclude(tree: Path) -> None:
    assert names(".", exclude=("pkg/", "a.py")) == ["build/e.py"]


def test_each_file_once(tree: Path) -> None:
    assert names("a.py", ".", "./a.py", exclude=("pkg/", "build/")) == ["a.py"]


def test_link_loops_end(tree: Path) -> None:
    (tree / "pkg" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "pkg" / "self").symlink_to(tree / "pkg", target_is_directory=True)
    assert "a.py" in names(".")


def test_a_missing_path_is_an_error(tree: Path) -> None:
    with pytest.raises(InputError, match="exists"):
        discover(["nope"])


def test_a_dangling_link_is_a_gap(tree: Path) -> None:
    (tree / "dead.py").symlink_to(tree / "gone.py")
    files, _ = discover(["."])
    dead = next(file for file in files if file.name == "dead.py")
    assert isinstance(dead.read(), Gap)


def test_an_unreadable_folder_is_a_gap(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def refuse(path: str):  # type: ignore[no-untyped-def]
        if str(path).endswith("pkg"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    files, gaps = discover(["."])
    assert [gap.subject for gap in gaps] == ["pkg"]
    assert gaps[0].failed
    assert "a.py" in [file.name for file in files]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("# -*- coding: gbk -*-\ns = '中'\n".encode("gbk"), "# -*- coding: gbk -*-\ns = '中'\n"),
        ("# coding: latin-1\ns = 'é'\n".encode("latin-1"), "# coding: latin-1\ns = 'é'\n"),
        (b"\r\n# coding: utf-8\r\nx = 1\r\n", "\r\n# coding: utf-8\r\nx = 1\r\n"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode(data, "f.py") == text


@pytest.mark.parametrize(
    ("data", "id"),
    [
        (b"x = '\xff'\n", "source.encoding"),
        (b"# coding: klingon\nx = 1\n", "source.encoding"),
        (b"x = 1\0\n", "source.null-bytes"),
    ],
)
def test_undecodable_files_are_gaps(data: bytes, id: str) -> None:
    found = decode(data, "f.py")
    assert isinstance(found, Gap)
    assert found.reason.id == id
    assert found.failed
    assert found.reason.say("zh") != found.reason.say("en")


def notebook(*cells: str | tuple[str, str]) -> str:
    rows = []
    for cell in cells:
        kind, text = ("code", cell) if isinstance(cell, str) else cell
        rows.append({"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)})
    return (
        json.dumps({"cells": rows, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
        + "\n"
    )


def test_notebook_cells_keep_their_own_lines() -> None:
    text = notebook("import torch\nx = 1", ("markdown", "# title"), "y = 2\nz = 3")
    source, gaps = read_notebook(text, "n.ipynb")
    assert source is not None
    assert not gaps
    assert source.text == "import torch\nx = 1\ny = 2\nz = 3\n"
    assert source.place(2) == (1, 2)
    assert source.place(4) == (3, 2)


def test_magics_are_blanked_line_for_line() -> None:
    source = "%matplotlib inline\nx = 1\n!pip install torch\nfiles = !ls\ny = x % 2\nx?\nif x:\n    %time f()\n"
    assert plain_python(source) == "pass\nx = 1\npass\npass\ny = x % 2\npass\nif x:\n    pass\n"
    assert plain_python("%%bash\nls -l\n") == "\n\n"
    assert plain_python(" !tts --text a \\\n   --out b \\\n c\nx = 1\n") == "pass\n\n\nx = 1\n"
    assert plain_python("%%time\nx = 1\n") == "\nx = 1\n"


def test_what_is_no_magic_stays() -> None:
    for source in (
        "print('%d' \\\n      % x)\n",
        "y = (x\n     % 2)\n",
        "cd = 3\nls.append(1)\ncat(x)\nrm, mv = 1, 2\npwd == 3\n",
    ):
        assert plain_python(source) == source


def test_commands_without_their_sign_are_magics() -> None:
    assert plain_python("% pip install torch\nx = 1\n") == "pass\nx = 1\n"
    assert plain_python("cd folder\nls\npip install torch\nx = 1\n") == "pass\npass\npass\nx = 1\n"


def test_an_indented_cell_is_left_unread() -> None:
    assert plain_python(" x = [1,\n      2]\n") == "\n\n"


def test_a_broken_cell_is_a_gap_and_the_rest_is_read() -> None:
    source, gaps = read_notebook(notebook("def f(:", "y = 2"), "n.ipynb")
    assert source is not None
    assert source.text.endswith("y = 2\n")
    assert [(gap.location.cell, gap.failed) for gap in gaps] == [(1, True)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', '{"cells": [3]}', "[" * 99_999])
def test_broken_notebooks_are_gaps(text: str) -> None:
    source, gaps = read_notebook(text, "n.ipynb")
    assert source is None
    assert len(gaps) == 1


def test_notebook_edits_leave_the_rest_as_it_was() -> None:
    text = notebook("a = 1\nb = 2", ("markdown", "文字"), "c = 3")
    after = edit_notebook(text, [Edit("n.ipynb", 2, 4, 2, 5, "9", cell=1)])
    assert json.loads(after)["cells"][0]["source"] == ["a = 1\n", "b = 9"]
    assert after.replace("b = 9", "b = 2") == text


def test_notebook_edits_keep_every_other_character() -> None:
    text = (
        '{"cells":\t[\r\n {"source": "a", "n": 1.10, "big": 1e999, "cell_type": "code"},\r\n'
        ' {"cell_type": "code", "source": ["x = \\u4e2d\\n", "y = 2"], "odd": "中", "n": 1E5}\r\n]}'
    )
    after = edit_notebook(text, [Edit("n.ipynb", 2, 4, 2, 5, "3", cell=2)])
    assert after == text.replace("y = 2", "y = 3")
    whole = edit_notebook(text, [Edit("n.ipynb", 1, 0, 1, 1, "b", cell=1)])
    assert whole == text.replace('"source": "a"', '"source": "b"')


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def test_changed_lines_since_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "old.py").write_text("a = 1\nb = 2\nc = 3\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "old.py").write_text("a = 1\nb = 9\nc = 3\nd = 4\n")
    (tmp_path / "new.py").write_text("x = 1\n")
    changed = changed_lines("HEAD", tmp_path)
    assert changed[str(tmp_path / "old.py")] == {2, 4}
    assert changed[str(tmp_path / "new.py")] is None


def test_git_of_a_hostile_repository_runs_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("x = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager"):
        git(tmp_path, "config", key, str(trap))
    (tmp_path / "a.py").write_text("x = 2\n")
    (tmp_path / "sprung").unlink(missing_ok=True)
    assert changed_lines("HEAD", tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_since_outside_a_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--since"):
        changed_lines("HEAD", tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements.txt", "numpy\ntorch==1.13.1\n", (1, 13)),
        ("requirements.txt", "torch>=2.1,<2.5  # note\n", (2, 1)),
        ("requirements.txt", "torchvision==0.9\ntorch\n", None),
        ("pyproject.toml", '[project]\nname="x"\ndependencies=["torch>=2.4"]\n', (2, 4)),
        ("pyproject.toml", '[project]\ndependencies=["torch ~= 2.0"]\n', (2, 0)),
        ("pyproject.toml", "torch [", None),
        ("setup.py", "setup(install_requires=[\n  'torch>=1.8',\n])\n", (1, 8)),
        ("environment.yml", "dependencies:\n  - python=3.9\n  - pytorch=1.12.1\n", (1, 12)),
        ("conda_env.yml", "dependencies:\n- pytorch::pytorch=1.7.0=py3.8_cuda11\n", (1, 7)),
        ("environment_gpu.yaml", "dependencies:\n- pip\n- pip:\n  - torch==1.9.0+cu111\n", (1, 9)),
        ("environment.yml", "dependencies: &a [*a, 'pytorch >=1.8,<2']\n", (1, 8)),
        ("environment.yml", "dependencies: [pytorch-lightning=1.5, torchvision=0.13]\n", None),
        ("environment.yml", "- [", None),
        (
            "requirements/train.txt",
            "-r base.txt\ntorch == 1.10.* ; python_version < '3.11'\n",
            (1, 10),
        ),
        ("requirements_dev.txt", "torch==1.6.0 \\\n  --hash=sha256:00\n", (1, 6)),
        ("Dockerfile", "FROM nvcr.io/x\nRUN pip install -q \\\n  'torch==1.11.0' && ls\n", (1, 11)),
        ("docker/Dockerfile.gpu", "FROM pytorch/pytorch:1.13.1-cuda11.6\n", None),
        ("Dockerfile.gpu", "FROM pytorch/pytorch:1.13.1-cuda11.6\n", (1, 13)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^1.12"\n', (1, 12)),
        ("Pipfile", '[packages]\ntorch = {version = "==1.5.1"}\n', (1, 5)),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.4\n", (1, 4)),
    ],
)
def test_the_torch_of_a_project(
    name: str, text: str, version: tuple[int, int] | None, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    assert project_torch(tmp_path / "src") == version
