"""Fifteen small pipelines as people write them: loops, datasets, loaders, generators, stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def image(seed: int, height: int = 40, width: int = 32) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def matrices() -> dict[str, Any]:
    one, other = np.arange(48.0).reshape(6, 8), np.linspace(-1, 1, 48).reshape(6, 8)
    added = np.add(one, other)
    return {"added": added, "scaled": added / np.max(added), "flat": np.reshape(added, -1)}


def unary_functions() -> np.ndarray:
    values = np.abs(np.linspace(-3, 3, 60, dtype=np.float32))
    return np.clip(np.floor(values * 10) - np.ceil(values), -5, 20)


def network_input() -> list[np.ndarray]:
    made = []
    for seed in range(3):
        small = cv2.resize(image(seed), (24, 24))
        small = cv2.GaussianBlur(cv2.cvtColor(small, cv2.COLOR_BGR2RGB), (5, 5), 0)
        made.append(small.astype(np.float32) / 255.0)
    return made


def masks() -> list[np.ndarray]:
    made = []
    for seed in range(3):
        grey = cv2.cvtColor(cv2.flip(image(seed), 1), cv2.COLOR_BGR2GRAY)
        _, binary = cv2.threshold(grey, 127, 255, cv2.THRESH_BINARY)
        made.append(cv2.blur(binary, (3, 3)))
    return made


def edges() -> list[dict[str, np.ndarray]]:
    made = []
    for seed in range(2):
        grey = cv2.cvtColor(image(seed), cv2.COLOR_BGR2GRAY)
        across = cv2.Sobel(grey, cv2.CV_64F, 1, 0, ksize=3)
        down = cv2.Sobel(grey, cv2.CV_64F, 0, 1, ksize=3)
        strength = np.sqrt(across**2 + down**2)
        made.append({"canny": cv2.Canny(grey, 100, 200), "sobel": strength / strength.max()})
    return made


def one_image_many_ways() -> dict[str, np.ndarray]:
    one = image(7)
    return {
        "by position": cv2.resize(one, (20, 10)),
        "by keyword": cv2.resize(one, dsize=(10, 20)),
        "hsv": cv2.cvtColor(one, cv2.COLOR_BGR2HSV),
        "median": cv2.medianBlur(one, 5),
    }


class Crops:
    """A dataset without torch."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> np.ndarray:
        part = image(index)[4:36, :32]
        return (np.clip(part, 10, 200).astype(np.float32) / 255.0).transpose(2, 0, 1)


def dataset_without_torch() -> np.ndarray:
    crops = Crops()
    return np.stack([crops[index] for index in range(len(crops))])


class Photos(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        photo = cv2.cvtColor(cv2.resize(image(index), (16, 16)), cv2.COLOR_BGR2RGB)
        return self.normalised(photo), index

    def normalised(self, photo: np.ndarray) -> np.ndarray:
        return photo.astype(np.float32).transpose(2, 0, 1) / 255.0


def loader() -> list[torch.Tensor]:
    return [batch for batch, _ in DataLoader(Photos(), batch_size=2)]


def first_batches_of_a_loader() -> list[torch.Tensor]:
    made = []
    for number, (batch, _) in enumerate(DataLoader(Photos(), batch_size=2)):
        made.append(batch.mean())
        if number == 1:
            break
    return made


def random_changes() -> np.ndarray:
    made = []
    for seed in range(4):
        one = image(seed) / 255.0
        if np.random.random() > 0.5:
            one = np.flip(one, axis=1)
        one = np.clip(one * np.random.uniform(0.8, 1.2), 0, 1)
        made.append(np.clip(one + np.random.normal(0, 0.01, one.shape), 0, 1))
    return np.stack(made)


def numbers() -> Iterator[np.ndarray]:
    for seed in range(5):
        values = np.clip(np.random.default_rng(seed).random((12, 12), np.float32), 0.1, 0.9)
        yield (values - values.mean()) / (values.std() + 1e-8)


def generator() -> list[np.ndarray]:
    return list(numbers())


def photos() -> Iterator[np.ndarray]:
    for seed in range(5):
        yield cv2.GaussianBlur(cv2.resize(image(seed), (16, 12)), (3, 3), 0)


def generator_of_photos() -> list[np.ndarray]:
    return [photo.astype(np.float32) / 255.0 for photo in photos()]


def in_batches(items: Callable[[], Iterator[np.ndarray]], size: int) -> Iterator[np.ndarray]:
    batch: list[np.ndarray] = []
    for item in items():
        batch.append(item)
        if len(batch) == size:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)


def generator_of_batches() -> list[np.ndarray]:
    return list(in_batches(photos, 2))


def stages() -> dict[str, Any]:
    """What is laid out otherwise than row by row is summed in another order."""
    made = []
    for seed in range(4):
        pooled = (image(seed, 64, 64) / 255.0).reshape(32, 2, 32, 2, 3).mean(axis=(1, 3))
        pooled = np.clip(pooled * np.random.uniform(0.9, 1.1, (1, 1, 3)), 0, 1)
        made.append(pooled.transpose(2, 0, 1))
    batch = np.stack(made)
    return {"batch": batch, "mean": float(batch.mean()), "std": float(batch.std())}


def pictures() -> list[Image.Image]:
    return [Image.fromarray(image(seed)).convert("L") for seed in range(3)]


PIPELINES: tuple[Callable[[], Any], ...] = (
    matrices, unary_functions, network_input, masks, edges, one_image_many_ways, dataset_without_torch, loader,
    first_batches_of_a_loader, random_changes, generator, generator_of_photos, generator_of_batches, stages, pictures,
)  # fmt: skip
