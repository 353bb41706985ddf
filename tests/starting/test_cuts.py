"""Data that cannot be made: the code that reads them is cut out, and its values are decided by their use."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchstone.core.place import Place
from torchstone.dryrun.run import dry_run
from torchstone.starting.cuts.deciding import decide
from torchstone.starting.cuts.forms import Form, Leaf, make_value
from torchstone.starting.cuts.refining import refine_values
from torchstone.starting.cuts.scopes import find_cuts
from torchstone.starting.cuts.structure import leaves_of
from torchstone.starting.cuts.trials import base_form, values_for_module
from torchstone.starting.cuts.undecided import Origin, Undecided, UndecidedError
from torchstone.starting.obstacles import Decided, Misfit, OpenValues
from torchstone.starting.supplies import MadeValues

PROJECT = """
import struct
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def read_scans(path):
    with open(path, "rb") as file:
        size, kind = struct.unpack("<4sQ", file.read(12))
        if size != b"SCAN":
            raise ValueError("not a scan")
        return [file.read(kind) for _ in range(kind)]


class Scans(Dataset):
    def __init__(self, path):
        self.scale = 2.0
        self.scans = read_scans(path)

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, index):
        scan, label = self.scans[index], self.labels[index]
        return {"scan": torch.frombuffer(scan), "meta": (label, index)}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 8, 4, 4), nn.ReLU(), nn.Conv2d(8, 8, 4, 4))
        self.head = nn.Linear(8 * 4 * 4, 7)

    def forward(self, scan):
        return self.head(self.body(scan).flatten(1))


def main():
    data = Scans("scans.bin")
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1 / data.scale)
    for batch in DataLoader(data, 8):
        label, _ = batch["meta"]
        loss = F.cross_entropy(net(batch["scan"].float()), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""


def value(name: str = "x", rows: int = 0, batch: int = 0) -> Undecided:
    return Undecided(Origin("a.py", "Data", ("(0",), name, rows), (), batch)


def form_of(error: pytest.ExceptionInfo[UndecidedError]) -> Form:
    (decided,) = error.value.decided
    assert decided.form is not None
    return decided.form


def function(text: str) -> ast.FunctionDef:
    node = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def test_what_is_given_is_read_from_the_code() -> None:
    found = leaves_of(
        function("def f(self, i):\n    image = g(i)\n    return t(image), self.labels[i]")
    )
    assert found == (Leaf(("(0",), "image"), Leaf(("(1",), "labels"))
    found = leaves_of(function("def f():\n    s = {'a': x, 'b': (y, z)}\n    return s"))
    assert [leaf.place for leaf in found] == [("{a",), ("{b", "(0"), ("{b", "(1")]
    found = leaves_of(function("def f(p):\n    return DataLoader(p), DataLoader(p)"))
    assert [leaf.place for leaf in found] == [("(0", "@"), ("(1", "@")]


def test_what_trains_is_never_cut_out() -> None:
    text = textwrap.dedent("""
        def read(path):
            return open(path).read()

        def train(path):
            loss = read(path)
            loss.backward()
            return loss
    """)
    found = find_cuts([Place("a.py", 3), Place("a.py", 6)], lambda _: text)
    assert [(cut.scope, cut.is_dataset) for cut in found] == [("read", False)]


def test_a_use_decides_the_form() -> None:
    target = value("label", batch=4)
    with pytest.raises(UndecidedError) as error:
        functional.cross_entropy(torch.randn(4, 7), target)
    assert form_of(error) == Form("tensor", "int64", (), 7)
    with pytest.raises(UndecidedError) as error:
        functional.mse_loss(torch.randn(4, 3, 5), value(batch=4).float() / 255 * 2 - 1)
    assert form_of(error) == Form("tensor", "float32", (3, 5))
    with pytest.raises(UndecidedError) as error:
        functional.binary_cross_entropy_with_logits(torch.randn(4, 1), value(batch=4).unsqueeze(1))
    assert form_of(error).shape == ()
    with pytest.raises(UndecidedError) as error:
        _, _, _, _ = value("photo", batch=4).shape
    assert form_of(error).shape == (3, 32, 32)
    with pytest.raises(UndecidedError) as error:
        _, _ = value()
    assert error.value.decided[0].parts == ("(0", "(1")


def test_a_module_is_tried_until_it_accepts() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 5), nn.Flatten(), nn.Linear(4 * 60 * 60, 2))
    one = value(batch=8)
    made = values_for_module(net, (one,), {}, [one])
    assert made is not None
    assert base_form(made[0], (), 8) == Form("tensor", "float32", (1, 64, 64))


def test_decisions_are_kept_and_values_repeat() -> None:
    given = MadeValues("a.py", "Data", True, (Leaf((), "sample"),))
    (split,) = decide(
        OpenValues((Decided("a.py", "Data", (), "sample", None, ("(0", "(1")),)), [given]
    )
    assert isinstance(split, MadeValues)
    form = Form("tensor", "int64", (3,), 5)
    (known,) = decide(OpenValues((Decided("a.py", "Data", ("(1",), "", form),)), [split])
    assert isinstance(known, MadeValues)
    assert [leaf.form for leaf in known.leaves] == [None, form]
    assert torch.equal(make_value(form, 3), make_value(form, 3))
    assert int(make_value(Form("tensor", "int64", (99,), 5), 0).max()) == 4
    assert not decide(OpenValues((Decided("a.py", "Data", ("(1",), "", form),)), [known])


def test_a_program_whose_data_cannot_be_made_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    report = dry_run("train.py")
    steps = {item.name: item.value for item in report.measures}
    assert steps["optimizer_steps"] > 0, report.gaps
    assert not report.findings
    (said,) = [item for item in report.measures if item.name == "supplied"]
    assert "Scans reads what is missing here" in str(said.evidence)
    assert "2×64×64" in str(said.evidence)


def test_slices_keep_a_value_open() -> None:
    origin = Origin("data.py", "read", (), "train", 128)
    part = Undecided(origin)[:, 3:9]
    with pytest.raises(UndecidedError) as decided:
        functional.embedding(part, torch.zeros(50, 8))
    form = decided.value.decided[0].form
    assert form is not None
    assert (form.dtype, form.high) == ("int64", 50)


def test_values_are_refined_by_what_torch_says() -> None:
    floats = MadeValues("data.py", "read", False, (Leaf((), "train", Form(shape=(8, 4))),))
    whole = refine_values((floats,), Misfit("indices"))
    assert whole[0].leaves[0].form == Form(dtype="int64", shape=(8, 4), high=64)
    fewer = refine_values(whole, Misfit("range"))
    assert fewer[0].leaves[0].form == Form(dtype="int64", shape=(8, 4), high=16)


def test_only_what_reads_is_cut_out() -> None:
    text = (
        "def accuracy(output, target):\n    return output.view(-1).eq(target)\n"
        "def read(path):\n    return open(path).read()\n"
        "def parser():\n    made = ArgumentParser()\n    made.add_argument('x', choices=load())\n    return made\n"
    )
    for line, expected in ((2, []), (4, ["read"]), (7, [])):
        cuts = find_cuts([Place("util.py", line)], lambda _: text)
        assert [cut.scope for cut in cuts] == expected


def test_an_object_tells_which_attributes_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nfrom torch import nn\n"
        "def read(path):\n    with open(path) as file:\n        if file.readline() != 'v2':\n"
        "            raise ValueError('another format')\n    return Corpus(file)\n"
        "corpus = read('corpus.bin')\nmodel = nn.Embedding(80, 4)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for part in (corpus.train, corpus.valid):\n"
        "    loss = model(part[:, :5]).sum()\n    loss.backward()\n    optimizer.step()\n"
    )
    report = dry_run(str(tmp_path / "train.py"))
    assert not report.findings
    assert not report.gaps
