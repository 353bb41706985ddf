"""A program that lacks something runs with what is supplied, and the report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dryrun.conftest import Run
from torchstone.core.errors import InputError
from torchstone.core.finding import Severity
from torchstone.core.report import Report

STEP = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(loss):
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def supplied(report: Report) -> list[str]:
    tables = [item.evidence[0] for item in report.measures if item.name == "supplied"]
    return [row[0].en for table in tables for row in table.rows]  # type: ignore[union-attr]


def steps(report: Report) -> float:
    return next(item.value for item in report.measures if item.name == "optimizer_steps")


def test_one_thing_after_the_other(run: Run, folder: Path) -> None:
    (folder / "README.md").write_text("x")
    (folder / "lib").mkdir()
    (folder / "lib/helpers.py").write_text("SIZE = 4\n")
    text = STEP + (
        "import logbook_pack, numpy as np\nfrom helpers import SIZE\n"
        "data = torch.from_numpy(np.load('data/x.npy'))[:, :SIZE].float()\n"
        "kind = np.float(1.0)\nrun = logbook_pack.init(project='x')\n"
        "for batch in data.split(64):\n    loss = model(batch).sum()\n    step(loss)\n"
        "    run.log({'loss': loss.item()})\n"
    )
    report = run(text)
    assert not report.findings
    assert not report.gaps
    assert steps(report) == 4
    said = "\n".join(supplied(report))
    for word in ("logbook_pack", "helpers", "x.npy", "numpy.float"):
        assert word in said
    assert not list(folder.glob("data*"))  # nothing is made in the project itself


def test_nothing_is_supplied_where_that_is_not_wanted(run: Run) -> None:
    report = run(STEP + "open('data.txt')\n", as_it_is=True)
    assert not supplied(report)
    assert "a file is missing" in report.gaps[0].reason.say("en")


def test_a_guarded_import_stays_missing(run: Run) -> None:
    text = (
        STEP
        + "try:\n    import guarded_pack\nexcept ImportError:\n    guarded_pack = None\nassert guarded_pack is None\n"
    )
    assert not supplied(run(text))


def test_data_that_do_not_fit_are_no_fault_of_the_program(run: Run) -> None:
    report = run(STEP + "for line in open('data.txt'):\n    number = int(line.split(',')[99])\n")
    assert not report.findings
    (gap,) = report.gaps
    assert gap.failed
    assert "does not go on with what was supplied" in gap.reason.say("en")
    assert "data.txt" in gap.reason.say("zh")


def test_a_finding_that_rests_on_made_data_names_them(run: Run) -> None:
    report = run(STEP + "open('data.txt').read()\nmodel(torch.ones(3, 5))\n", no_fixes=True)
    (found,) = report.findings
    assert found.severity is Severity.MEDIUM
    assert "data.txt is missing: made data (text)" in found.why.say("en")


def test_a_name_that_is_not_defined_is_found_all_the_same(run: Run) -> None:
    report = run(STEP + "import plot_pack\nprint(undefined_name)\n")
    assert [item.rule for item in report.findings] == ["DR102"]


def test_a_package_that_computes_is_still_missing(run: Run) -> None:
    with pytest.raises(InputError, match="No module named 'kernel_pack'"):
        run(STEP + "import kernel_pack\nstep(kernel_pack.fused(model(torch.ones(3, 4))).sum())\n")


REFUSED_PATHS = {
    "assertion": "assert os.path.exists(path)\n",
    "exception": "if not os.path.isfile(path):\n        raise RuntimeError('put the data there')\n",
}


@pytest.mark.parametrize("way", REFUSED_PATHS)
def test_a_path_that_the_program_itself_refuses_is_made(way: str, run: Run) -> None:
    report = run(
        STEP + f"import os\ndef read(path):\n    {REFUSED_PATHS[way]}"
        "    return [len(line.split()) for line in open(path)]\n"
        "sizes = read('.data/penn/train.txt')\nstep(model(torch.ones(3, 4)).sum())\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)
    assert any(".data/penn/train.txt" in text for text in supplied(report))


def test_a_name_of_a_guarded_import_is_a_package_that_is_missing(run: Run) -> None:
    report = run(
        STEP + "try:\n    import fastfuse as ff\nexcept ImportError:\n    pass\n"
        "ff.tune(model)\nstep(model(torch.ones(3, 4)).sum())\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)
    assert any("fastfuse" in text for text in supplied(report))
    report = run("try:\n    import json\nexcept ImportError:\n    pass\nff.tune()\n")
    assert [item.rule for item in report.findings] == ["DR102"]


def test_defaults_of_an_older_python(run: Run) -> None:
    report = run(
        STEP + "import dataclasses\n@dataclasses.dataclass\nclass Inner:\n    size: int = 4\n"
        "@dataclasses.dataclass\nclass Outer:\n    inner: Inner = Inner()\n"
        "step(model(torch.ones(3, Outer().inner.size)).sum())\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)
    report = run("import dataclasses\n@dataclasses.dataclass\nclass Outer:\n    sizes: list = []\n")
    assert report.gaps


def test_a_hub_that_cannot_be_reached(run: Run) -> None:
    report = run(
        STEP + "names = ['a'] + torch.hub.list('someone/models:main')\n"
        "step(model(torch.ones(3, 4)).sum() * len(names))\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)


def test_a_folder_that_the_program_made_is_entered(run: Run, folder: Path) -> None:
    report = run(
        STEP
        + "import os\nstart = os.getcwd()\nos.makedirs('outputs/now')\nos.chdir('outputs/now')\n"
        "open('log.txt', 'w').write('x')\nassert os.getcwd() == os.path.join(start, 'outputs/now')\n"
        "assert os.path.isfile(os.path.join(start, 'outputs/now/log.txt'))\nos.chdir(start)\n"
        "assert os.path.isfile('outputs/now/log.txt')\nstep(model(torch.ones(3, 4)).sum())\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)
    assert not (folder / "outputs").exists()


def test_a_file_beside_the_script_is_found_from_another_folder(run: Run, folder: Path) -> None:
    (folder / "README.md").write_text("x")
    (folder / "examples").mkdir()
    (folder / "examples/sizes.txt").write_text("4\n")
    text = STEP + "size = int(open('./sizes.txt').read())\nstep(model(torch.ones(3, size)).sum())\n"
    report = run(text, target="examples/train.py")
    assert (report.findings, steps(report)) == ((), 1)


def test_a_hook_made_from_a_missing_class_and_a_version_that_is_written_at_installation(
    run: Run, folder: Path
) -> None:
    (folder / "README.md").write_text("x")
    (folder / "own").mkdir()
    (folder / "own/__init__.py").write_text("from own.version import __version__\n")
    report = run(
        STEP + "import kerasy, own\nclass Hook(kerasy.callbacks.Checkpoint):\n"
        "    def on_step(self):\n        self.seen = True\n"
        "hook = Hook('path', every=2)\nhook.on_step()\nassert own.__version__ == '0.0.0' and hook.seen\n"
        "step(model(torch.ones(3, 4)).sum())\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)
    assert any("own.version" in text for text in supplied(report))


def test_a_version_on_which_the_program_insists(run: Run) -> None:
    report = run(
        STEP + "import yaml\nassert yaml.__version__ == '0.3.2'  # version check\n"
        "step(model(torch.ones(3, 4)).sum())\n"
    )
    assert (report.findings, report.gaps, steps(report)) == ((), (), 1)
    assert any("yaml 0.3.2" in text for text in supplied(report))


def test_words_of_the_command_line_that_are_not_given_are_no_fault(run: Run) -> None:
    with pytest.raises(InputError):
        run("import sys\nprint(open(sys.argv[1]).read())\n")
