"""The branch that sends ranks different ways."""

from __future__ import annotations

from pathlib import Path

from torchstone.core.place import Place
from torchstone.dryrun.ranks.branches import find_branch

SOURCE = """\
def step(rank):
    if rank == 0:
        save()
    reduce()


def main(rank):
    for epoch in range(2):
        if epoch and not rank:
            continue
        step(rank)
    end()
"""


def test_the_branch_around_one_of_two_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SOURCE, "utf-8")
    outer = Place(str(path), 11)
    branch, text = find_branch((Place(str(path), 3), outer), (Place(str(path), 4), outer))
    assert (branch.line, text) == (2, "if rank == 0")


def test_a_branch_that_leaves_before_the_second_line(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SOURCE, "utf-8")
    branch, _ = find_branch((Place(str(path), 12),), (Place(str(path), 11),))
    assert branch.line in (8, 9)


def test_a_file_that_cannot_be_read_has_no_branch() -> None:
    assert find_branch((Place("nowhere.py", 3),), (Place("nowhere.py", 4),)) == (Place(), "")
