"""Plain implementations of packages, and what is done to installed ones of other versions."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from torchstone.starting.arguments import (
    add_arguments,
    find_missing_arguments,
    value_for,
    watch_parsers,
)
from torchstone.starting.diagnosis import find_obstacle
from torchstone.starting.documents import is_document, python_blocks, python_of
from torchstone.starting.obstacles import MissingOperators, OtherKeyword
from torchstone.starting.replacements.checkpoints import MadeState
from torchstone.starting.replacements.keywords import drop_keyword
from torchstone.starting.replacements.plain_packages import put_plain
from torchstone.starting.supplies import Arguments

PACKAGES = ("gym", "torchtext", "flash_attn", "apex")


@pytest.fixture
def plain() -> Iterator[None]:
    for name in PACKAGES:
        put_plain(name)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]


def test_environments_give_what_the_line_takes(plain: None) -> None:
    del plain
    code = (
        "import gym\nfrom gym.spaces import Box, Discrete\nenv = gym.make('NobodysWalker-v1')\n"
        "first = env.reset()\nseen, reward, done, info = env.step(env.action_space.sample())\n"
        "first5, _ = env.reset()\nseen, reward, ended, cut, info = env.step(None)\n"
        "pixels = gym.make('PongNoFrameskip-v4')\nassert isinstance(pixels.action_space, Discrete)\n"
        "assert isinstance(env.action_space, Box)\nassert pixels.reset().shape == (210, 160, 3)\n"
        "assert first.shape == first5.shape == env.observation_space.shape\n"
    )
    exec(compile(code, "program.py", "exec"), {})


def test_texts_become_batches(plain: None) -> None:
    del plain
    data = importlib.import_module("torchtext.data")
    legacy = importlib.import_module("torchtext.legacy.data")
    assert legacy.Field is data.Field
    datasets = importlib.import_module("torchtext.datasets")
    text = data.Field(lower=True, include_lengths=True, batch_first=True, init_token="<s>")
    label = data.LabelField()
    train, test = datasets.IMDB.splits(text, label)
    text.build_vocab(train, min_freq=2, vectors="glove.6B.50d")
    label.build_vocab(train)
    assert text.vocab.vectors.shape == (len(text.vocab), 50)
    batches, _ = data.BucketIterator.splits((train, test), batch_size=4)
    batch = next(iter(batches))
    words, lengths = batch.text
    assert words.shape == (4, int(lengths.max()))
    assert words[0, 0] == text.vocab.stoi["<s>"]
    assert set(batch.label.tolist()) <= {0, 1}


def test_attention_is_attention(plain: None) -> None:
    del plain
    attend = importlib.import_module("flash_attn").flash_attn_func
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4, 2, 8), torch.randn(1, 4, 1, 8), torch.randn(1, 4, 1, 8)
    made = attend(q, k, v, causal=True)
    assert torch.allclose(made[:, 0], v[:, 0].expand(1, 2, 8))  # the first sees itself alone


def test_mixed_precision_of_apex_is_full_precision(plain: None) -> None:
    del plain
    amp = importlib.import_module("apex.amp")
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    assert amp.initialize(model, optimizer, opt_level="O1") == (model, optimizer)
    with amp.scale_loss(model(torch.ones(1, 2)).sum(), optimizer) as loss:
        loss.backward()
    assert list(amp.master_params(optimizer)) == list(model.parameters())


def test_a_made_state_leaves_everything_as_it_is() -> None:
    state = MadeState()
    assert state["model"].items() == MadeState().items()
    assert state["epoch"] + 1 == 1
    assert int(state["step"]) == 0
    assert not list(state["weights"])


ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('data')
parser.add_argument('--lr', '-l', type=float, required=True)
parser.add_argument('--mode', choices=['fast', 'slow'], required=True)
parser.add_argument('--seed', type=int)
parser.parse_args([])
"""
HYDRA = "raise ValueError('Missing mandatory value: data.root')"
PARSERS = {
    "argparse": (ARGPARSE, ("made-data", "-l", "0.1", "--mode", "fast")),
    "hydra": (HYDRA, ("data.root=made-data",)),
    "its own": ("raise SystemExit(2)", ()),
}


@pytest.mark.parametrize("name", PARSERS)
def test_arguments_that_a_program_insists_on(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, words = PARSERS[name]
    try:
        exec(compile(code, "program.py", "exec"), {})
    except BaseException as error:
        found = find_missing_arguments(error)
    assert (found.needed if found else ()) == words
    capsys.readouterr()
    assert add_arguments(("--a",), (Arguments(words),)) == ["--a", *words]


READS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--train-json', default=None)
parser.add_argument('--save-dir', default=None)
parser.add_argument('--data', default='there')
parser.add_argument('--resume-file', default=None)
args = parser.parse_args([])
open({opened})
"""


@pytest.mark.parametrize(
    ("opened", "words"),
    [("args.train_json", ("--train-json", "made-data/train_json")), ("1.5", None)],
)
def test_files_to_read_that_nobody_named(
    opened: str, words: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        argparse.ArgumentParser, "parse_known_args", argparse.ArgumentParser.parse_known_args
    )
    watch_parsers()
    with pytest.raises(TypeError) as caught:
        exec(compile(READS.replace("{opened}", opened), "program.py", "exec"), {})
    found = find_missing_arguments(caught.value)
    assert (found.needed if found else None) == words


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("TABLE = {'resnet': 1, 'vit': 2}\nmodel = TABLE[args.arch]\n", "resnet"),
        ("if args.arch == 'small':\n    pass\n", "small"),
        ("if args.arch.lower() in ('a', 'b'):\n    pass\n", "a"),
        ("if args.other == 'small':\n    pass\n", "gpt2"),
        ("if args.arch != 'small':\n    pass\n", "gpt2"),
    ],
)
def test_a_required_text_is_one_that_the_program_knows(
    source: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models.py").write_text(source)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "train.py")])
    assert value_for("arch", str, None) == value


def test_keywords_and_operators_of_other_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "site-packages" / "newpack"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text(
        "class Trainer:\n    def __init__(self, epochs=1): self.epochs = epochs\n"
    )
    monkeypatch.syspath_prepend(str(home.parent))
    code = compile(
        "import newpack\nmade = newpack.Trainer(gpus=1, epochs=3)\n",
        str(tmp_path / "train.py"),
        "exec",
    )
    scope: dict[str, object] = {}
    with pytest.raises(TypeError) as caught:
        exec(code, scope)
    found = find_obstacle(caught.value)
    assert found == OtherKeyword("newpack", "Trainer", "gpus", "")
    drop_keyword("newpack", "Trainer", "gpus")
    exec(code, scope)
    assert getattr(scope["made"], "epochs", 0) == 3
    opener = importlib.import_module("newpack")
    opener.read = lambda root, mode="r": (root, mode)
    opener.read.__qualname__ = "read"
    drop_keyword("newpack", "read", "db_path")
    assert opener.read(db_path="x", mode="w") == ("x", "w")  # renamed, not gone
    error = RuntimeError("operator newpack::nms does not exist")
    assert find_obstacle(error) == MissingOperators("newpack")
    del sys.modules["newpack"]


def test_an_example_of_a_text_keeps_its_lines(tmp_path: Path) -> None:
    text = "# A\n\n```bash\nls\n```\n```python\n>>> a = 1\nb = 2\n```\nend\n"
    assert list(python_blocks(text)) == [6]
    code = python_of("README.md#6", text)
    assert code.splitlines()[6:] == ["a = 1", "b = 2"]
    (tmp_path / "README.md").write_text(text)
    assert is_document(str(tmp_path / "README.md#6"))
    assert not is_document(str(tmp_path / "README.md"))
