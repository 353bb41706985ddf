"""What tools of a review make of a project: comments that silence, annotations, starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.jobs.job import GOALS, Job, Request, Scope, Skipped
from torchstone.conductor.phases.execute import State, ToolResult
from torchstone.conductor.project.facts import EntryPoint, Launch, ProjectFacts
from torchstone.conductor.project.survey import survey
from torchstone.conductor.tools import dryrun, jaxtyping, lint, probes
from torchstone.conductor.words import counted
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Message, Text

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


def test_a_script_that_trains_in_another_file_is_an_entry_point(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("")
    (tmp_path / "engine" / "trainer.py").write_text(LOOP.format(comment=""))
    (tmp_path / "engine" / "tokens.py").write_text("def run(): pass\n")
    (tmp_path / "projects").mkdir()
    main = "\nif __name__ == '__main__':\n    run()\n"
    (tmp_path / "projects" / "adder.py").write_text(
        f"from engine.trainer import train as run{main}"
    )
    (tmp_path / "projects" / "encode.py").write_text(f"from engine.tokens import run{main}")
    (tmp_path / "play.py").write_text(
        "from engine import trainer\n\nif __name__ == '__main__':\n    agent = trainer.Agent()\n    agent.update()\n"
    )
    entries = {item.path: item.trains for item in survey(tmp_path).entry_points}
    assert entries == {"play.py": True, "projects/adder.py": True, "projects/encode.py": False}


def _result(state: State, *measures: tuple[str, float], failed: bool = False) -> ToolResult:
    nothing = Text("", "")
    gap = Gap("train.py", Message("a", nothing), "", failed=failed)
    report = Report("probes", measures=tuple(Measure(name, value, "", nothing) for name, value in measures),
                    gaps=(gap,))  # fmt: skip
    return ToolResult("probes", "probes", "", state, report)


def test_a_script_that_ended_at_its_imports_was_not_looked_at() -> None:
    assert not _result("done", ("steps", 0), ("modules", 0)).looked
    assert not _result("done", failed=True).looked
    assert not _result("late").looked
    assert _result("done", ("steps", 2), ("modules", 0)).looked
    assert _result("cached").looked


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("p.add_argument('epochs', type=int)\np.add_argument('--lr', type=float, required=True)", ("2", "--lr", "0.1")),
        ("p.add_argument('kind', choices=['small', 'large'])\np.add_argument('--seed', type=int)", ("small",)),
        ("p.add_argument('epochs', type=int)\np.add_argument('data')", ()),
        ("p.add_argument('epochs', type=int, nargs='?')", ()),
    ],
)  # fmt: skip
def test_arguments_that_a_script_insists_on_get_small_values(
    tmp_path: Path, lines: str, words: tuple[str, ...]
) -> None:
    text = f"import argparse\np = argparse.ArgumentParser()\n{lines}\nif __name__ == '__main__':\n    train()\n"
    (tmp_path / "train.py").write_text(text)
    (entry,) = survey(tmp_path).entry_points
    assert entry.arguments == words
    (tmp_path / "README.md").write_text("python train.py 7 data\n")
    (entry,) = survey(tmp_path).entry_points
    assert entry.arguments == ("7", "data")


def _dryrun_jobs(*entries: EntryPoint) -> dict[str, str]:
    facts = ProjectFacts("p", 1, 1, entry_points=entries)
    offered = dryrun.offer(Request(facts, Scope(GOALS)))
    assert not isinstance(offered, Skipped)
    return {job.id: job.arguments[2] for job in offered}


def test_only_starts_that_somebody_promised_can_accuse() -> None:
    alone = EntryPoint("a.py", trains=True)
    launched = EntryPoint("b.py", trains=True, launched=True)
    insists = EntryPoint("c.py", trains=True, required=("2",))
    documented = EntryPoint("d.py", (Launch(("--x", "1")),), trains=True, launched=True)
    assert _dryrun_jobs(alone, launched, insists, documented) == {
        "dryrun-a-1": "documented", "dryrun-b-1": "tried", "dryrun-b-2": "tried",
        "dryrun-c-1": "tried", "dryrun-d-1": "documented", "dryrun-d-2": "tried",
    }  # fmt: skip
