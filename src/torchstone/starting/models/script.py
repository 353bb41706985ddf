"""A training script for a model of the project with made inputs: four steps, then an evaluation."""

from __future__ import annotations

from torchstone.starting.cuts.forms import BATCH
from torchstone.starting.models.recipes import Recipe

STEPS = 4
_TEXT = """# Written by torchstone: no script of the project could be run, so that this one trains a model of it on made inputs.
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / name) for name in {folders}]

import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, Dataset

from {module} import {names}
{settings}

class MadeInputs(Dataset):
    def __init__(self):
        self.batches = []
        for seed in range({steps}):
            torch.manual_seed(seed)
            self.batches.append(({inputs},))

    def __len__(self):
        return {steps} * {batch}

    def __getitem__(self, index):
        given = self.batches[index // {batch}]
        return [item[index % {batch}] if isinstance(item, torch.Tensor) else item for item in given]


def collate(rows):
    columns = zip(*rows)
    return [torch.stack(item) if isinstance(item[0], torch.Tensor) else item[0] for item in columns]


def size_of(outputs):
    tensors = [item for item in tree_leaves(outputs) if isinstance(item, torch.Tensor)]
    used = [item for item in tensors if item.is_floating_point() and item.requires_grad]
    return sum(item.float().square().mean() for item in used)


def main():
    loader = DataLoader(MadeInputs(), {batch}, collate_fn=collate)
    torch.manual_seed(0)
    model = {model}
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    model.train()
    for given in loader:
        outputs = model(*given)
        loss = size_of(outputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for given in loader:
            model(*given)


if __name__ == "__main__":
    main()
"""
_SETTINGS = """

class Settings(dict):
    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)

"""


def write_script(recipe: Recipe) -> str:
    """Its text."""
    return _TEXT.format(
        folders=list(recipe.folders),
        module=recipe.module,
        names=", ".join(recipe.names),
        settings=_SETTINGS if "Settings(" in recipe.model else "",
        model=recipe.model,
        inputs=", ".join(recipe.inputs),
        steps=STEPS,
        batch=BATCH,
    )


def script_name(recipe: Recipe) -> str:
    """Beside the project's own files, with a name that nobody gives a file."""
    return f"_torchstone_{recipe.name}.py"
