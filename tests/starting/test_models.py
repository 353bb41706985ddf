"""Models of a project that are built from its code and called with made inputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

from torchstone.starting.models.discovery import find_models
from torchstone.starting.models.guesses import Settings, inputs_for, value_for
from torchstone.starting.models.recipes import Recipe, find_recipe
from torchstone.starting.models.script import script_name, write_script

RESNET = """
from torch import nn


class Block(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.conv = nn.Conv2d(planes, planes, 3, padding=1)

    def forward(self, x):
        return x + self.conv(x)


class Net(nn.Module):
    def __init__(self, block, counts, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2)
        self.body = nn.Sequential(*(block(8) for _ in range(counts[0])))
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3)))


def net18():
    return Net(Block, [2], 7)


class Padded(Block):
    pass
"""
CODER = """
import torch
from torch import nn
from .parts import Embed


class Coder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = Embed(config.vocab_size, config.hidden)
        self.cell = nn.GRU(config.hidden, config.hidden, config.num_layers, batch_first=True)
        self.out = nn.Linear(config.hidden, config.get("labels", 5))

    def forward(self, input_ids, attention_mask=None):
        return self.out(self.cell(self.embed(input_ids))[0])
"""
PARTS = """
from torch import nn


class Embed(nn.Embedding):
    def __init__(self, count, width):
        super().__init__(count, width)

    def forward(self, ids):
        return super().forward(ids)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "nets" / "text").mkdir(parents=True)
    for folder in ("nets", "nets/text"):
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "nets" / "resnet.py").write_text(RESNET)
    (tmp_path / "nets" / "text" / "coder.py").write_text(CODER)
    (tmp_path / "nets" / "text" / "parts.py").write_text(PARTS)
    (tmp_path / "test_nets.py").write_text("class Fake:\n    def forward(self): pass\n")
    return tmp_path


def test_whole_networks_come_first(project: Path) -> None:
    found = find_models(project, sorted(project.rglob("*.py")))
    assert [item.name for item in found] == ["Net", "Coder", "Embed", "Block"]
    net = found[0]
    assert net.expressions == ("Net(Block, [2], 7)", "net18()")
    assert [item.name for item in net.required] == ["block", "counts", "classes"]


def test_models_are_built_called_and_trained(project: Path) -> None:
    sys_path, modules = list(sys.path), set(sys.modules)
    found = {item.name: item for item in find_models(project, sorted(project.rglob("*.py")))}
    try:
        made = {name: find_recipe(project, found[name]) for name in ("Net", "Coder")}
    finally:
        sys.path[:] = sys_path
        for name in set(sys.modules) - modules:
            del sys.modules[name]
    net, coder = made["Net"], made["Coder"]
    assert isinstance(net, Recipe)
    assert isinstance(coder, Recipe)
    assert (net.model, net.inputs) == ("Net(Block, [2], 7)", ("torch.randn(4, 3, 32, 32)",))
    assert coder.model == "Coder(config=Settings(vocab_size=64, hidden=32, num_layers=2, labels=5))"
    assert coder.inputs == ("torch.randint(0, 64, (4, 16))",)
    for recipe in (net, coder):
        (project / script_name(recipe)).write_text(write_script(recipe))
    names = " ".join(
        f"runpy.run_path('{script_name(item)}', run_name='__main__');" for item in (net, coder)
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy; {names}"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_inputs_follow_the_first_layers() -> None:
    assert next(inputs_for(nn.Sequential(nn.Linear(5, 2)), ["x"])) == ("torch.randn(4, 5)",)
    assert next(inputs_for(nn.Conv1d(2, 2, 3), ["x", "mask"])) == ("torch.randn(4, 2, 64)", "None")
    assert list(inputs_for(nn.Linear(2, 2), [])) == []


def test_words_for_sizes() -> None:
    settings = Settings()
    assert (settings.n_heads, settings["dropout"], settings.get("width", 7)) == (4, 0.1, 7)
    assert settings.expression == "Settings(n_heads=4, dropout=0.1, width=7)"
    assert value_for("anything", "float") == "0.1"
