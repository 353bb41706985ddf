"""What the environment lacks is never the program's fault: each of these once was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dryrun.conftest import Run

STEP = """
import os, shutil, subprocess, torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(loss):
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


def only_gap(report: object) -> str:
    assert not report.findings, report.findings[0].message("en")  # type: ignore[attr-defined]
    (gap,) = report.gaps  # type: ignore[attr-defined]
    assert gap.failed
    assert gap.reason.say("zh") != gap.reason.say("en")
    return str(gap.reason.say("en"))


def test_a_folder_is_removed_and_made_again(run: Run, folder: Path) -> None:
    (folder / "out/sub").mkdir(parents=True)
    (folder / "out/sub/old.txt").write_text("kept")
    text = STEP + (
        "shutil.rmtree('out')\nassert not os.path.exists('out')\nos.makedirs('out')\n"
        "assert os.listdir('out') == [] and not os.path.exists('out/sub/old.txt')\n"
        "assert not list(os.scandir('out'))\nopen('out/new.txt', 'w').write('new')\n"
        "assert os.listdir('out') == ['new.txt']\nstep(model(torch.ones(1, 4)).sum())\n"
    )
    report = run(text)
    assert not report.findings
    assert not report.gaps
    assert (folder / "out/sub/old.txt").read_text() == "kept"


def test_a_removed_folder_is_not_found(run: Run, folder: Path) -> None:
    (folder / "out").mkdir()
    text = STEP + (
        "os.rmdir('out')\ntry:\n    open('out/x', 'w')\nexcept FileNotFoundError:\n    pass\n"
        "else:\n    raise SystemExit(5)\ntry:\n    os.listdir('out')\nexcept FileNotFoundError:\n    pass\n"
        "else:\n    raise SystemExit(6)\n"
    )
    assert not run(text).gaps


@pytest.mark.parametrize(
    "command",
    [
        "subprocess.check_call(['curl', '-sf', 'http://example.com/data.zip'])",
        "subprocess.run('wget http://example.com/d', shell=True, check=True)",
        "subprocess.check_output(['git', 'clone', 'https://example.com/x.git'])",
    ],
)
def test_a_program_that_downloads_needs_the_network(command: str, run: Run) -> None:
    assert "needs the network" in only_gap(run(STEP + command + "\n"))


def test_a_command_that_is_not_installed_is_missing(run: Run) -> None:
    said = only_gap(run(STEP + "subprocess.run(['no-such-tool', '-x'], check=True)\n"))
    assert "no-such-tool" in said


def test_a_command_that_fails_for_itself_stays_a_finding(run: Run) -> None:
    report = run(STEP + "subprocess.check_call(['false'])\n")
    assert [item.rule for item in report.findings] == ["DR102"]


def test_tensors_of_the_default_type_are_on_its_device(run: Run) -> None:
    text = (
        "import torch\ntorch.set_default_tensor_type('torch.cuda.FloatTensor')\n"
        "model = torch.nn.Linear(2, 2)\nx = torch.cat([torch.Tensor([[1.0]]), torch.ones(1, 1)], 1)\n"
        "assert x.is_cuda\nmodel(x).sum().backward()\nassert torch.Tensor(2, 3).is_cuda\n"
    )
    report = run(text)
    assert not report.findings
    assert not report.gaps


def test_sparse_products_are_beyond_fake_tensors(run: Run) -> None:
    text = STEP + (
        "matrix = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (2, 2))\n"
        "step(torch.sparse.mm(matrix, model(torch.ones(2, 4))).sum())\n"
    )
    report = run(text, device="cpu")
    assert not report.findings


@pytest.mark.parametrize(
    "kind", ["torch.utils.data.RandomSampler([])", "torch.utils.data.DataLoader([], shuffle=True)"]
)
def test_an_empty_data_folder_is_missing_data(kind: str, run: Run, folder: Path) -> None:
    text = (
        STEP
        + f"import glob\nfiles = glob.glob('data/train/*.png')\nloader = {kind.replace('[]', 'files')}\n"
    )
    said = only_gap(run(text, as_it_is=True))
    assert "data/train" in said
    report = run(text)  # made images take its place, and the report says so
    assert not report.findings
    (supplied,) = (item for item in report.measures if item.name == "supplied")
    assert "data/train" in supplied.evidence[0].rows[0][0].en  # type: ignore[union-attr]


def test_a_moved_name_of_an_installed_package_is_a_version(run: Run) -> None:
    said = only_gap(run("import torch\nfrom numpy import no_such_name_of_old\n"))
    assert "numpy" in said
    assert "installed" in said


def test_a_removed_attribute_of_an_installed_package_is_a_version(run: Run, folder: Path) -> None:
    (folder / "requirements.txt").write_text("numpy==1.19\n")
    said = only_gap(run("import torch, numpy as np\nnp.no_such_type_of_old(3)\n"))
    assert "1.19" in said


def test_a_submodule_that_is_gone_is_not_a_package_to_install(run: Run) -> None:
    said = only_gap(run("import torch\nimport numpy.no_such_part\n"))
    assert "numpy" in said
    assert "installed" in said
