"""Datasets that are given as a specification."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchstone.core.errors import UsageError
from torchstone.core.report import Report
from torchstone.dryrun.data_spec import SampleField, parse_sample


def test_fields_of_a_sample() -> None:
    assert parse_sample("") == ()
    image, label = parse_sample("image=3x8x8:float16, label=:int64<1000")
    assert image == SampleField("image", (3, 8, 8), "float16")
    assert label == SampleField("label", (), "int64", 1000)
    assert parse_sample("16") == (SampleField("", (16,)),)


@pytest.mark.parametrize(
    "text", ["3x", "a=3,4", "a=1,a=2", "3:int65", ":int64<0", "3,,4", "99999x99999"]
)
def test_what_is_no_sample_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="--data"):
        parse_sample(text)


TRAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, root):
        self.files = open(root + "/index.txt").read().split()

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        raise AssertionError("files are not read")

model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for image, label in DataLoader(Images("nowhere"), batch_size=64, shuffle=True):
    assert image.shape[1:] == (3, 8, 8) and int(label.max()) < 10
    loss = nn.functional.cross_entropy(model(image.cuda()), label.cuda())
    loss.backward()
    optimizer.step()
"""


def test_a_dataset_without_its_files_runs(run: Callable[..., Report]) -> None:
    report = run(TRAIN, data="3x8x8,:int64<10")
    assert report.findings == ()
    measures = {item.name: item for item in report.measures}
    assert measures["optimizer_steps"].value == 2  # 1,000 samples: a full and a remainder batch
    assert measures["assumptions"].value == 2
