"""Datasets and pretrained models whose files are not on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.starting.replacements.datasets import SHAPES, replace_dataset

TORCHVISION = {
    "__init__.py": "",
    "datasets/__init__.py": "from .vision import VisionDataset\nfrom .all import *\n",
    "datasets/vision.py": (
        "class VisionDataset:\n    def __init__(self, root, transform=None, target_transform=None):\n"
        "        self.root, self.transform = root, transform\n"
    ),
    "datasets/all.py": (
        "from .vision import VisionDataset\n"
        "class CIFAR10(VisionDataset):\n    def __init__(self, *a, **k): raise RuntimeError('not found')\n"
        "    def __len__(self): return len(self.data)\n"
        "class MNIST(CIFAR10):\n    class_to_idx = property(lambda self: {})\n"
    ),
}


@pytest.mark.parametrize("name", ["CIFAR10", "MNIST"])
def test_datasets_have_the_shape_of_the_real_ones(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in TORCHVISION.items():
        target = tmp_path / "torchvision" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for loaded in [item for item in sys.modules if item.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, loaded)
    replace_dataset(name)
    import torchvision.datasets  # type: ignore[import-not-found]

    made = getattr(torchvision.datasets, name)("data", train=True, download=True)
    assert tuple(made.data.shape[1:]) == SHAPES[name][0]
    assert len(made) == len(made.targets)
    assert 0 <= int(max(made.targets)) < SHAPES[name][1]
    for loaded in [item for item in sys.modules if item.partition(".")[0] == "torchvision"]:
        del sys.modules[loaded]


PRETRAINED = """
from torchstone.starting.replacements.pretrained import replace_pretrained
noted = []
replace_pretrained(lambda package, what: noted.append(what))
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
name = 'nobody/gpt2-of-nobody'
assert AutoConfig.from_pretrained(name).model_type == 'gpt2'
assert type(AutoModelForCausalLM.from_pretrained(name)).__name__ == 'GPT2LMHeadModel'
batch = AutoTokenizer.from_pretrained(name)(['one sentence', 'two'], return_tensors='pt', padding=True)
assert batch['input_ids'].shape == (2, 12)
assert noted and all('gpt2' in what for what in noted)
"""


def test_a_pretrained_model_is_built_from_its_name() -> None:
    """In a process of its own: the replacement lasts as long as the process."""
    subprocess.run(
        [sys.executable, "-c", PRETRAINED], check=True, timeout=300,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
