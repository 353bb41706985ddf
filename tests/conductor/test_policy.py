"""Edits that a model or an agent wrote: what they may reach, and who lets them into the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.conductor.changes.applying import accept_command, select_changes
from torchstone.conductor.changes.patches import FileChange, changes_of, diff_of, edits_of
from torchstone.conductor.changes.policy import refuse_reach
from torchstone.conductor.choices import TextEdit
from torchstone.conductor.phases.design import Design, Solution, Step
from torchstone.conductor.phases.verdicts import Verdict, Verification
from torchstone.core.errors import TorchstoneError
from torchstone.core.text import Text

BEFORE = """import os
import requests
import torch
import torch.nn.functional as F
from helpers import gather

RANK = int(os.environ["RANK"])


def step(model, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    torch.save(model.state_dict(), "last.pt")
    return loss
"""
HELPERS = "import socket\nimport urllib3 as web\nimport torch\n\n\ndef gather(x):\n    return x\n"
LINE = "    loss.backward()\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(BEFORE)
    (root / "helpers.py").write_text(HELPERS)
    return root


def refused(place: Path, top: str, body: str) -> str:
    after = top + BEFORE.replace(LINE, LINE + "".join(f"    {row}\n" for row in body.splitlines()))
    return refuse_reach((FileChange("train.py", BEFORE, after),), place)


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("import urllib.request\n", "urllib.request.urlopen('http://x')"),
        ("import socket\n", ""),
        ("from subprocess import run\n", ""),
        ("from torch import hub\n", ""),
        ("from torch.utils import cpp_extension\n", ""),
        ("from helpers import socket\n", ""),
        ("from helpers import web\n", ""),
        ("import helpers\n", "helpers.web.request('GET', 'x')"),
        ("", "os.system('id')"),
        ("", "os.environ['KEY']"),
        ("", "requests.post('http://x', data=RANK)"),
        ("", "r = requests\nr.get('http://x')"),
        ("", "torch.hub.load('a', 'b')"),
        ("", "torch.load('x.pt')"),
        ("", "torch.save(x, 'other.pt')"),
        ("", "torch.os.system('id')"),
        ("", "F.torch.os.system('id')"),
        ("", "t = torch\nt.hub"),
        ("", "torch.utils.cpp_extension.load('x', [])"),
        ("", "torch.ops.load_library('x.so')"),
        ("", "torch._C._demangle('x')"),
        ("", "getattr(torch, 'hub').load('a', 'b')"),
        ("", "getattr(torch, 'o' + 's')"),
        ("", "getattr(step(model, x, y), 'os')"),
        ("", "exec('1')"),
        ("", "eval('1')"),
        ("", "__import__('os')"),
        ("", "open('x', 'w')"),
        ("", "step.__globals__['os']"),
        ("", "().__class__.__base__.__subclasses__()"),
        ("", "(i for i in ()).gi_frame.f_back"),
        ("", "x.cpu().numpy().tofile('x')"),
        ("", "F.cross_entropy = lambda *a: 0"),
        ("", "raise SystemExit(0)"),
        ("", "model.push_to_hub('x')"),
        ("import builtins\n", ""),
        ("from torch import *\n", ""),
    ],
)
def test_an_edit_that_reaches_out_is_refused(place: Path, top: str, body: str) -> None:
    assert refused(place, top, body).startswith("it adds ")


@pytest.mark.parametrize(
    ("top", "body"),
    [
        ("import math\n", "x = math.sqrt(2.0)"),
        ("import numpy as np\n", "np.random.seed(0)"),
        ("from torch import nn\n", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
        ("import torch.distributed as dist\n", "dist.all_reduce(loss)\ndist.send(x, 1)"),
        ("from helpers import gather as g\n", "x = g(x)"),
        ("", "torch.random.manual_seed(0)\nloss = gather(loss.detach())"),
        ("", "with torch.no_grad():\n    x = torch.nn.functional.softmax(x, -1)"),
        ("from functools import partial\n", "f = partial(F.dropout, p=0.1)"),
        ("", "path = os.path.join('a', 'b')"),
        ("", "if hasattr(model, 'module'):\n    model = getattr(model, 'module')"),
    ],
)
def test_an_edit_that_computes_is_taken(place: Path, top: str, body: str) -> None:
    assert not refused(place, top, body)


def test_what_was_there_may_be_moved_and_removed(place: Path) -> None:
    save = '    torch.save(model.state_dict(), "last.pt")\n'
    moved = BEFORE.replace(save, "").replace(LINE, save + LINE)
    assert not refuse_reach((FileChange("train.py", BEFORE, moved),), place)
    assert not refuse_reach((FileChange("train.py", BEFORE, BEFORE.replace(save, "")),), place)


def test_a_notebook_is_not_taken_from_others(place: Path) -> None:
    assert "not a .py file" in refuse_reach((FileChange("a.ipynb", "{}", "{ }"),), place)


def verified(place: Path) -> tuple[Design, Verification]:
    ours = edits_of(place, [TextEdit("train.py", "y):", "y):  # ours")])
    theirs = edits_of(place, [TextEdit("train.py", "return loss", "return loss.detach()")])
    ways = (
        Solution("p-1-1", "p-1", "template", Text("a", "a"), ours),
        Solution("p-2-1", "p-2", "model", Text("b", "b"), theirs, by="agent"),
    )
    diff = diff_of(changes_of(place, (*ours, *theirs)))
    verdicts = tuple(Verdict(way.problem, way.id, "fixed", "proven") for way in ways)
    joint = Verdict("all", "all", "fixed", "proven", diff=diff)
    steps = tuple(Step(way.problem, way.id) for way in ways)
    return Design(ways, steps), Verification(verdicts, joint)


def test_a_change_of_others_waits_until_a_person_accepts_it(place: Path) -> None:
    design, done = verified(place)
    ready = select_changes(place, design, done)
    assert [way.id for way in ready.waiting] == ["p-2-1"]
    assert "# ours" in ready.diff
    assert "detach" not in ready.diff
    command = accept_command("RUN", ready.waiting)
    assert command == "torchstone review --resume RUN --apply --accept p-2"
    accepted = select_changes(place, design, done, ("p-2",))
    assert not accepted.waiting
    assert "detach" in accepted.diff


def test_an_unknown_id_or_another_tree_is_an_error(place: Path) -> None:
    design, done = verified(place)
    with pytest.raises(TorchstoneError, match="p-9"):
        select_changes(place, design, done, ("p-9",))
    (place / "train.py").write_text(BEFORE.replace("return loss", "return loss * 1"))
    with pytest.raises(TorchstoneError):
        select_changes(place, design, done)
