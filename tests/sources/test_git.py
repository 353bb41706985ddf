"""What git says of a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torchstone.core.errors import InputError, UsageError
from torchstone.sources.git import changed_lines, git_state


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("config", "user.email", "a@b")
    git("config", "user.name", "a")
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("1\n2\n3\n")
    (tmp_path / "inner" / "b.py").write_text("1\n")
    (tmp_path / "gone.py").write_text("1\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    return tmp_path


def test_lines_that_are_added_changed_and_gone(repository: Path) -> None:
    (repository / "a.py").write_text("1\ntwo\n3\n4\n5\n")
    (repository / "gone.py").unlink()
    (repository / "inner" / "new é.py").write_text("1\n")
    found = changed_lines("HEAD", repository / "inner")
    top = repository.resolve()
    assert found == {str(top / "a.py"): {2, 4, 5}, str(top / "inner" / "new é.py"): None}


def test_a_file_of_which_lines_are_only_gone(repository: Path) -> None:
    (repository / "a.py").write_text("1\n3\n")
    assert changed_lines("HEAD", repository) == {str(repository.resolve() / "a.py"): set()}


def test_names_that_git_quotes(repository: Path) -> None:
    (repository / 'q"é\t.py').write_text("x\ny\nz\n")
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    found = changed_lines("HEAD", repository)
    assert found == {str(repository.resolve() / 'q"é\t.py'): {1, 2, 3}}


def test_how_far_a_folder_is_from_its_commit(repository: Path) -> None:
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert git_state(repository) == (head, 0)
    (repository / "a.py").write_text("x")
    (repository / "inner" / "b.py").write_text("x")
    assert git_state(repository) == (head, 2)
    assert git_state(repository / "inner") == (head, 1)


def test_a_commit_that_is_none(repository: Path) -> None:
    with pytest.raises(UsageError, match="commit"):
        changed_lines("--output=x", repository)
    with pytest.raises(InputError, match="nothing"):
        changed_lines("nothing", repository)
