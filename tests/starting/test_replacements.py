"""Datasets and pretrained models whose files are not on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.starting.replacements.datasets import form_of, replace_dataset

TORCHVISION = {
    "__init__.py": "",
    "datasets/__init__.py": "from .vision import VisionDataset\nfrom .all import *\n",
    "datasets/vision.py": (
        "class VisionDataset:\n    def __init__(self, root, transforms=None, transform=None, target_transform=None):\n"
        "        self.root, self.transform, self.transforms = root, transform, transforms\n"
    ),
    "datasets/all.py": (
        "from .vision import VisionDataset\n"
        "class CIFAR10(VisionDataset):\n    def __init__(self, *a, **k): raise RuntimeError('not found')\n"
        "    def __len__(self): return len(self.data)\n"
        "class CelebA(CIFAR10): pass\n"
        "class MNIST(CIFAR10):\n    class_to_idx = property(lambda self: {})\n"
    ),
}


@pytest.mark.parametrize("name", ["CIFAR10", "MNIST", "CelebA"])
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

    kind = getattr(torchvision.datasets, name)
    made = kind("data", train=True, download=True)
    if name == "CelebA":
        image, target = type("Own", (kind,), {})("data", split="train")[3]
        assert (image.size, tuple(target.shape)) == ((218, 218), (40,))
    else:
        assert made.data.shape[1] == form_of(kind).side
        assert len(made) == len(made.targets)
        assert 0 <= int(max(made.targets)) < form_of(kind).classes
    for loaded in [item for item in sys.modules if item.partition(".")[0] == "torchvision"]:
        del sys.modules[loaded]


PRETRAINED = """
from torchstone.starting.replacements.pretrained import replace_pretrained
noted = []
replace_pretrained(lambda package, what: noted.append(what))
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
name = 'nobody/gpt2-of-nobody'
small = AutoConfig.from_pretrained(name)
assert small.model_type == 'gpt2'
small.n_layer, small.n_embd, small.n_head, small.vocab_size = 1, 8, 1, 300
assert type(AutoModelForCausalLM.from_pretrained(name, config=small)).__name__ == 'GPT2LMHeadModel'
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


WORKER = """
import multiprocessing
from torchstone.starting.applying import apply_supplies
from torchstone.starting.supplies import StandIn

apply_supplies([StandIn("no_such_tracker")], lambda path: True, lambda *_: None)


def work():
    import no_such_tracker
    print("has it", flush=True)


worker = multiprocessing.get_context("spawn").Process(target=work)
worker.start()
worker.join()
"""


def test_processes_of_the_program_have_what_was_supplied() -> None:
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True)
    assert done.stdout == "has it\n", done.stderr
