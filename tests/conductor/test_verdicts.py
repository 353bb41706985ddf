"""What goes with the patches of others, and edits that are tried one after the other."""

from __future__ import annotations

from pathlib import Path

from tests.conductor.test_interpret import finding, read
from torchstone.conductor.changes.templates import edits_for
from torchstone.conductor.phases.guide import Entry, Guide, guide_markdown
from torchstone.conductor.phases.problems import Problem
from torchstone.conductor.phases.verdicts import Verdict, Verification, with_consequences
from torchstone.core.text import Text


def problems_of(project: Path) -> dict[str, Problem]:
    found = read(
        project,
        finding("PR1", "router.py", 10, tool="probes"), finding("PR2", "router.py", 30, tool="probes"),
        finding("PR3", "router.py", 12, tool="probes"), finding("PR4", "train.py", 11, tool="probes"),
        finding("DR5", "model.py", 4, tool="dryrun"),
    )  # fmt: skip
    return {item.finding.rule: item for item in found.problems}


def proven(problem: Problem, *gone: Problem) -> Verdict:
    others = tuple(item.finding.fingerprint for item in gone)
    return Verdict(problem.id, f"{problem.id}-1", "fixed", "proven", others_gone=others)


def left(problem: Problem) -> Verdict:
    return Verdict(problem.id, f"{problem.id}-1", "not tried", "sketch")


def test_a_problem_goes_with_the_nearest_patch_of_its_file_or_with_all(project: Path) -> None:
    of = problems_of(project)
    by_id = {item.id: item for item in of.values()}
    verdicts = [proven(of["PR4"], of["PR3"]), proven(of["PR2"]), proven(of["PR1"], of["PR3"]),
                left(of["PR3"]), left(of["DR5"])]  # fmt: skip
    alone = with_consequences(verdicts, None, by_id)
    assert [item.state for item in alone] == ["proven", "proven", "proven", "with others", "sketch"]
    assert alone[3].outcome == "fixed"
    assert of["PR1"].id in alone[3].why.en, "the patch of another file took it away by chance"
    gone = (of["DR5"].finding.fingerprint,)
    joint = Verdict("all", "all", "fixed", "proven", others_gone=gone)
    together = with_consequences(verdicts, joint, by_id)
    assert together[4].why.en == "it goes with the proven patches together"
    assert [item.problem for item in Verification(tuple(together)).with_others] == [of["PR3"].id, of["DR5"].id]  # fmt: skip
    worse = Verdict("all", "all", "regressed", "dropped", others_gone=gone)
    assert with_consequences(verdicts, worse, by_id)[4] == left(of["DR5"])


def test_what_stays_away_whatever_is_changed_has_no_cause(project: Path) -> None:
    of = problems_of(project)
    by_id = {item.id: item for item in of.values()}
    verdicts = [proven(of["PR1"], of["PR3"]), proven(of["PR2"], of["PR3"]), left(of["PR3"])]
    assert with_consequences(verdicts, None, by_id)[2] == left(of["PR3"])


def test_of_two_that_wait_each_may_send(tmp_path: Path) -> None:
    (tmp_path / "pipe.py").write_text(
        "import torch.distributed as dist\n\n\ndef first(a):\n    dist.recv(a, src=1)\n\n\n"
        "def last(b):\n    dist.recv(b.grad, src=0)\n"
    )
    made = edits_for(finding("DR604", "pipe.py", 5, tool="dryrun"), tmp_path)
    assert [item.edits[0].text for item in made] == ["dist.send(a, dst=1)", "dist.send(b.grad, dst=0)"]  # fmt: skip


def test_the_guide_says_what_became_of_each_change() -> None:
    def entry(name: str) -> Entry:
        text = Text(f"title of {name}", name)
        return Entry(name, text, text, text, (), text, (Text("do it", "做"),), (), text)

    guide = Guide((entry("P1"), entry("P2")), (Text("check P1", "P1"), Text("check P2", "P2")))
    before = guide_markdown(guide, "en")
    assert "Tried" not in before
    assert ("check P2" in before, before.count("1. do it")) == (True, 2)
    done = Verification((
        Verdict("P1", "P1a", "fixed", "proven", check=Text("TS206 is gone", "TS206 已消失")),
        Verdict("P2", "P2a", "fixed", "with others", why=Text("it goes with the patch of P1", "随 P1 消失")),
    ))  # fmt: skip
    after = guide_markdown(guide, "en", done)
    assert "**Tried**: proven patch: TS206 is gone" in after
    assert "**Tried**: goes with other patches: it goes with the patch of P1" in after
    assert ("check P2" in after, after.count("1. do it")) == (False, 1)
    assert "**试验结果**: 随其他补丁消失：随 P1 消失" in guide_markdown(guide, "zh", done)
