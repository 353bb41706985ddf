"""What tools of a review make of a project: comments that silence, annotations, starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.job import GOALS, Job, Request, Scope, Skipped
from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.conductor.project.survey import survey
from torchstone.conductor.tools import jaxtyping, lint, probes
from torchstone.conductor.words import counted
from torchstone.core.text import Text

LOOP = """
import torch

def train(model, loader, optimizer):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        print(loss.item()){comment}
"""


def found(folder: Path, comment: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], float]:
    (folder / "train.py").write_text(LOOP.format(comment=comment))
    monkeypatch.chdir(folder)
    nothing = Text("", "")
    report = lint.run(Job("lint", "lint", "specialised", (), 1.0, nothing, nothing, False))
    (count,) = (item.value for item in report.measures if item.name == "silencing_comments")
    return [f"{item.rule}:{item.line}:{item.fingerprint[:0]}" for item in report.findings], count


def test_comments_of_the_tree_silence_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, none = found(tmp_path, "", monkeypatch)
    assert plain
    assert none == 0
    codes = ",".join(item.partition(":")[0] for item in plain)
    silenced, one = found(tmp_path, f"  # torchstone: ignore[{codes}] fine", monkeypatch)
    assert silenced == plain
    assert one == 1


def test_annotations_are_checked_where_there_are_any(tmp_path: Path) -> None:
    script = "import torch\n{line}\nif __name__ == '__main__':\n    for _ in range(2):\n        torch.ones(1, requires_grad=True).sum().backward()\n"
    (tmp_path / "train.py").write_text(script.format(line=""))
    assert isinstance(jaxtyping.offer(Request(survey(tmp_path), Scope(GOALS))), Skipped)
    (tmp_path / "train.py").write_text(script.format(line="from jaxtyping import Float"))
    offer = jaxtyping.offer(Request(survey(tmp_path), Scope(GOALS)))
    assert not isinstance(offer, Skipped)
    assert [job.arguments[0] for job in offer] == ["train.py"]


def test_every_documented_start_is_probed_and_then_the_widest() -> None:
    script = EntryPoint("train.py", (Launch(("--steps", "2")), Launch(("--tp", "2"), 2)), True, True,
                        ("--save", "probe.pt"))  # fmt: skip
    starts = probes._launches(script, 1)
    assert [(item.arguments, item.ranks, documented) for item, documented in starts] == [
        (("--steps", "2"), 1, True),
        (("--tp", "2"), 2, True),
        (("--tp", "2", "--save", "probe.pt"), 4, False),
    ]


def test_switches_come_from_options_and_from_the_readme(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse, torch\np = argparse.ArgumentParser()\n"
        "p.add_argument('--bf16', action='store_true')\np.add_argument('--camp', action='store_true')\n"
        "p.add_argument('--save', default='')\np.add_argument('--out', default='runs')\n"
        "if __name__ == '__main__':\n    for _ in range(2):\n        torch.ones(1, requires_grad=True).backward()\n"
    )
    (tmp_path / "README.md").write_text("`--save ckpt.pt` writes, `--resume ckpt.pt` reads.\n")
    (entry,) = survey(tmp_path).entry_points
    assert entry.switches == ("--bf16", "--save", "ckpt.pt")


def test_counts_have_their_nouns() -> None:
    assert [counted(1, "line"), counted(2, "line"), counted(2, "process")] == [
        "1 line", "2 lines", "2 processes",
    ]  # fmt: skip
