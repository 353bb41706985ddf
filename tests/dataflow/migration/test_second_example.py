"""The complete example of a DataLoader, with a written plan."""

# ruff: noqa: T201 - the lines of the guide print

from __future__ import annotations

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset

from torchstone.dataflow import PipelineMigrator

PLAN = {
    "context_device_map": {
        "ImageDataset.__getitem__/ImageDataset.preprocess/cv2.resize": "cuda:0",
        "ImageDataset.__getitem__/ImageDataset.preprocess/cv2.cvtColor": "cuda:0",
    }
}


class ImageDataset(Dataset):
    def __init__(self, size=100):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        # 模拟图像加载和处理
        image = self.load_image(idx)
        return self.preprocess(image)

    def load_image(self, idx):
        import numpy as np

        return np.random.rand(256, 256, 3).astype(np.float32)

    def preprocess(self, image):
        import cv2

        image = cv2.resize(image, (224, 224))
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def test_example_with_a_written_plan(capsys: pytest.CaptureFixture[str]) -> None:
    dataset = ImageDataset(size=16)
    dataloader = DataLoader(dataset, batch_size=4, num_workers=0)
    np.random.seed(0)
    expected = next(iter(dataloader))
    np.random.seed(0)
    migrator = PipelineMigrator.from_plan(PLAN, allow_rounding=True)

    # 使用迁移后的数据加载
    with migrator:
        for batch in dataloader:
            # batch 的预处理现在在 GPU 上执行
            print(f"Batch shape: {batch.shape}")
            break

    assert capsys.readouterr().out == "Batch shape: torch.Size([4, 224, 224, 3])\n"
    assert batch.dtype == expected.dtype
    np.testing.assert_allclose(batch.numpy(), expected.numpy(), rtol=0, atol=3e-5)
    assert migrator.get_stats()["calls_deferred"] == 8
