"""What goes with the patches of others, and edits that are tried one after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conductor.test_interpret import finding, read
from torchstone.conductor.choices import Proposal, TextEdit
from torchstone.conductor.experiments.against_one import ALONE, HELD
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.before import Before
from torchstone.conductor.phases.guide import Entry, Guide, Hunk, guide_markdown
from torchstone.conductor.phases.judging import agree_with_one, check_that_turned, was_decided
from torchstone.conductor.phases.problems import Problem
from torchstone.conductor.phases.verdicts import (
    Verdict,
    Verification,
    with_consequences,
    withdraw_proofs,
)
from torchstone.conductor.phases.verify import Search
from torchstone.conductor.project.copying import copied
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.repairs import edits_for
from torchstone.conductor.run import Review
from torchstone.core.fix import Edit
from torchstone.core.measure import Measure
from torchstone.core.report import Report
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


def test_a_dropped_patch_is_not_recommended() -> None:
    text = Text("add a barrier", "加 barrier")
    steps = (Text("git apply patches/01-P1.patch", "git apply patches/01-P1.patch"),)
    hunk = Hunk("a.py", 1, 1, "old = 1", "new = 1")
    entry = Entry("P1", text, text, text, (hunk,), text, steps, (), text, "01-P1.patch", "", "P1-1")
    guide = Guide((entry,), (Text("check", "检查"),))
    why = Text("the finding is still there", "问题仍存在")
    done = Verification((Verdict("P1", "P1-1", "remaining", "dropped", why=why),))
    for lang in ("en", "zh"):
        page = guide_markdown(guide, lang, done)
        assert "git apply" not in page
        assert "new = 1" not in page
        assert why.get(lang) in page
    # another solution of the same problem was dropped: this one has not been tried
    other = Verification((Verdict("P1", "P1-2", "remaining", "dropped", why=why),))
    assert "git apply" in guide_markdown(guide, "en", other)


def test_a_dropped_patch_is_not_left_in_the_run_folder(project: Path, tmp_path: Path) -> None:
    """A fix that does not hold: the dry run still crashes after it."""
    out = tmp_path / "out"
    train = project / "train.py"
    train.write_text(train.read_text().replace("torch.randn(4, 8)", "torch.randn(4, 9)"))
    wrong = TextEdit("train.py", "loss = F.", "print()\n        loss = F.")
    made = Review(project, ReviewOptions(path=str(project), tools=("dryrun",)), RunFolder(out))
    out.mkdir()
    with copied(project) as copy:
        made.keep_start(copy)
        plan = made.plan()
        execution = made.execute(plan, copy)
        found = made.interpret(plan, execution)
        made.proposals = (Proposal(found.problems[0].id, (wrong,), "print", "agent"),)
        design = made.design(found)
        mine = next(way for way in design.solutions if way.by == "agent")
        steps = tuple(replace(step, solution=mine.id) for step in design.steps)
        design = replace(design, steps=steps)
        made.guide(found, design)
        assert list((out / "patches").iterdir())
        done = made.verify(
            found, design, Before(plan, execution, copy, TestRun("none"), made.conditions)
        )
    assert [item.state for item in done.verdicts] == ["dropped"]
    assert not list((out / "patches").iterdir())
    assert "git apply patches" not in (out / "guide.md").read_text()


def test_silence_of_rank_rules_proves_nothing() -> None:
    """A wrong fix can make the right calls with the wrong values."""
    for rule, proven in (("DR601", False), ("PR402", False), ("DR600", True), ("PR101", True)):
        tool = "dryrun" if rule.startswith("DR") else "probes"
        assert bool(check_that_turned([finding(rule, "a.py", 1, tool=tool)]).en) is proven, rule


@pytest.mark.parametrize(
    ("held", "norm", "projection", "proven"),
    [
        (1.0, 2.0, 0.5, True),
        (0.0, 2.0, 0.5, False),  # the right calls with the wrong values
        (1.0, 2.0, -0.5, False),  # a negated loss: ranks agree with one process, which has changed
        (None, 2.0, 0.5, False),  # nothing was decided
    ],
)
def test_a_fix_for_ranks_is_proven_by_values(
    held: float | None, norm: float, projection: float, proven: bool
) -> None:
    def report(held: float | None, norm: float, projection: float) -> Report:
        values = {ALONE[0]: norm, ALONE[1]: projection}
        if held is not None:
            values[HELD] = held
        text = Text("", "")
        rows = tuple(Measure(name, value, "", text, text) for name, value in values.items())
        return Report("experiments", (), rows)

    after = [report(held, norm, projection)]
    assert bool(agree_with_one([report(0.0, 2.0, 0.5)], after).en) is proven
    # equal before as well: the comparison does not see this fault
    assert not agree_with_one([report(1.0, 2.0, 0.5)], after).en


def test_a_finding_counts_against_a_change_only_if_it_could_have_been_found_before() -> None:
    """Ranks that read the same data step with the same gradients, averaged or not."""

    def run(**values: float) -> Report:
        text = Text("", "")
        named = {name.replace("_PR", ":PR"): value for name, value in values.items()}
        rows = [Measure(name, value, "", text, text) for name, value in named.items()]
        return Report("probes", (), tuple(rows))

    drift = finding("PR402", "train.py", 27, tool="probes")
    now = run(steps=8.0)
    assert was_decided(drift, run(steps=8.0), now)
    assert was_decided(drift, run(steps=8.0, asked_PR402=1.0, held_PR402=1.0), now)
    assert not was_decided(drift, run(steps=8.0, asked_PR402=1.0), now)


def test_nothing_is_proven_where_the_changes_together_make_something_worse() -> None:
    alone = Verdict("p-1", "s-1", "fixed", "proven")
    offered = Verdict("p-2", "s-2", "fixed", "applies")
    together = Verdict("all", "all", "regressed", "dropped", new=(finding("EX103", "train.py", 7),))
    withdrawn, other = withdraw_proofs([alone, offered], together)
    assert withdrawn.state == "applies"
    assert "EX103" in withdrawn.why.en
    assert other == offered
    for fine in (None, replace(together, outcome="fixed")):
        assert withdraw_proofs([alone, offered], fine) == [alone, offered]


@dataclass
class StagedTree:
    """A tree whose runs say what its parts decide."""

    before: object
    parts: dict[str, tuple[Edit, ...]]

    def reports(self, _: object) -> list[Report]:
        there = [finding("EX118", "checkpoint.py", 9)] if "half" in self.parts else []
        return [Report("experiments", tuple(there))]


def test_the_change_that_brings_something_new_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchstone.conductor.phases.verify.Tree", StagedTree)
    parts = {
        name: (Edit(path, 1, 0, 1, 0, ""),)
        for name, path in (("one", "checkpoint.py"), ("half", "checkpoint.py"), ("two", "train.py"))
    }
    before = SimpleNamespace(execution=SimpleNamespace(results=()), plan=SimpleNamespace(jobs=()))
    verdicts = {name: Verdict(f"p-{name}", name, "fixed", "proven") for name in parts}
    search = Search(before, math.inf, StagedTree(before, parts), verdicts)  # type: ignore[arg-type]
    new = (finding("EX118", "checkpoint.py", 21),)
    assert search._drop_what_brings(new)
    assert list(search.base.parts) == ["one", "two"]
    assert [item.state for item in search.verdicts.values()] == ["proven", "dropped", "proven"]
    assert "EX118 at checkpoint.py:21" in search.verdicts["half"].why.en
