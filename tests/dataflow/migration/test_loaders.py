"""DataLoaders: the device half of a sample is computed in batches, and batches are the same."""

from __future__ import annotations

import collections
import io
import pickle
import random

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from torchstone.dataflow import PipelineMigrator

PLAN = {
    "context_device_map": {
        "cv2.resize": "cuda:0",
        "cv2.cvtColor": "cuda:0",
        "cv2.flip": "cuda:0",
        "cv2.GaussianBlur": "cuda:0",
    }
}
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def load(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 256, (60 + index % 3, 50, 3), np.uint8)


class Images(Dataset):
    """Decode, resize, colour, augment, normalise; random as real ones are."""

    def __len__(self) -> int:
        return 22

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        image = cv2.resize(load(index), (32, 24))
        if random.random() < 0.5:
            image = cv2.flip(image, 1)
        if np.random.rand() < 0.3:
            image = cv2.GaussianBlur(image, (3, 3), 0)
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        top = int(torch.randint(0, 4, ()))
        image = image[top : top + 20, 2:30]
        image = image.astype(np.float32) / 255.0
        image = (image - MEAN) / STD
        return image.transpose(2, 0, 1), index


class Odd(Dataset):
    """Uses the image in ways that cannot be recorded."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> dict[str, object]:
        image = cv2.resize(load(index), (32, 24))
        height, width = image.shape[:2]
        assert isinstance(image, np.ndarray)
        corner = image[:4, :4]
        corner[:] = 7  # writes into the image
        cv2.rectangle(image, (5, 5), (9, 9), (255, 0, 0))
        small = cv2.pyrDown(image)
        image -= 3
        mean = image.mean()
        tensor = torch.from_numpy(cv2.flip(small, 0)).permute(2, 0, 1).float() / 255
        return {
            "image": image,
            "tensor": tensor,
            "mean": mean,
            "size": (height, width),
            "corner": corner,
            "legacy": torch.FloatTensor(cv2.resize(load(index), (8, 8)).astype(np.float32)),
            "mixed": torch.ones(8, 8, 3) * cv2.resize(load(index), (8, 8)).astype(np.float32),
        }


class Tensors(Images):
    """Ends in a tensor, as most public datasets do."""

    def __getitem__(self, index: int) -> dict[str, object]:
        array, number = super().__getitem__(index)
        image = cv2.resize(load(index), (32, 24))[:, :, ::-1]
        whole = torch.from_numpy(np.ascontiguousarray(array))
        bytes_first = torch.from_numpy(cv2.cvtColor(load(index)[:40], cv2.COLOR_BGR2RGB))
        scaled = bytes_first.permute(2, 0, 1).float().div(255.0)
        assert isinstance(whole, torch.Tensor)
        assert scaled.shape == (3, 40, 50)
        assert scaled.dtype == torch.float32
        written = torch.as_tensor(cv2.flip(load(index)[:40], 0))
        written[0, 0] = 7
        return {
            "whole": whole,
            "scaled": (scaled - 0.5) * 2.0,
            "divided": bytes_first / 255,  # torch's promotion is not numpy's
            "copy": torch.tensor(cv2.resize(load(index), (8, 8))).transpose(0, 2).contiguous(),
            "picked": bytes_first[:5, ::2],
            "norm": scaled.sub(torch.full((3, 1, 1), 0.5)).norm(),
            "written": written,
            "strided": torch.from_numpy(np.array(image)),
            "number": number,
        }


class AsTensorsDo(Dataset):
    """What a tensor of torch allows, and a handle has to allow, too."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> dict[str, object]:
        image = cv2.flip(load(index)[:12, :10], 1)
        tensor = torch.from_numpy(image)
        laid_out = tensor.permute(dims=(2, 0, 1)).contiguous()
        laid_out[0] = 7  # a copy: `tensor` keeps its values
        shared = cv2.flip(image, 0)
        np.ascontiguousarray(shared)[0] = 9  # no copy: `shared` has it
        real = cv2.flip(image, 0)
        stacked = torch.stack([torch.from_numpy(real), torch.from_numpy(real)])
        real[:] = 0  # the stack is a copy
        floats = torch.from_numpy(cv2.flip(image, 0)).float()
        assert isinstance(floats, torch.FloatTensor)
        weight = torch.ones(3, requires_grad=True)
        file = io.BytesIO()
        torch.save(torch.from_numpy(cv2.flip(image, 0)).float(), file)
        file.seek(0)
        turned = cv2.flip(image, 0).transpose(2, 0, 1)
        return collections.OrderedDict(
            tensor=tensor,
            laid_out=laid_out.view(-1),
            recorded=torch.from_numpy(cv2.flip(image, 0)).permute(2, 0, 1).contiguous(),
            rows=torch.from_numpy(np.ascontiguousarray(turned)).view(-1),
            cut=torch.from_numpy(cv2.flip(image, 0)[2:5, 1:4].copy()).view(-1),
            shared=shared,
            stacked=stacked,
            mean=torch.stack([floats, floats]).mean(0),
            alpha=floats.add(1, alpha=2),
            floor=floats.div(7, rounding_mode="floor"),
            bytes_less=torch.from_numpy(cv2.flip(image, 0)) - torch.full((3,), 0.5),
            tracked=(floats * weight).requires_grad,
            loaded=torch.load(file, weights_only=True),
            pickled=len(pickle.dumps(cv2.flip(image, 0))),
            sometimes=cv2.flip(image, 0) if index % 2 else load(index)[:12, :10],
            otherwise=load(index)[:12, :10] if index % 2 else cv2.flip(image, 0),
        )


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(7):
            yield cv2.resize(load(index), (16, 16))


def stacked(samples):
    return torch.stack([torch.as_tensor(image) for image, _ in samples]), [
        number for _, number in samples
    ]


def batches(dataset, workers: int, **options):
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    loader = DataLoader(dataset, batch_size=4, num_workers=workers, **options)
    return list(loader), (
        random.getstate(),
        pickle.dumps(np.random.get_state()),
        torch.get_rng_state().tolist(),
    )


def same(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Images, Odd, Stream, Tensors, AsTensorsDo])
def test_batches_are_the_same_bit_for_bit(dataset, workers: int) -> None:
    expected, state = batches(dataset(), workers)
    with PipelineMigrator.from_plan(PLAN) as migrator:
        got, state_after = batches(dataset(), workers)
        counts = migrator.get_stats()
    assert same(expected, got)
    assert state == state_after
    if dataset is not Odd:
        assert counts["calls_deferred"] > 0
    if dataset in (Images, Stream):
        assert counts["calls_fallback"] == counts["calls_migrated"] == 0
    fates = ("migrated", "deferred", "fallback", "stayed", "unused")
    assert counts["calls_total"] == sum(counts[f"calls_{fate}"] for fate in fates) > 0
    assert counts["calls_unused"] == counts["calls_stayed"] == 0
    assert counts["quarantined"] == {}


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_that_nobody_collates_arrive_as_tensors(workers: int) -> None:
    expected, _ = batches(Tensors(), workers, collate_fn=list)
    with PipelineMigrator.from_plan(PLAN) as migrator:
        got, _ = batches(Tensors(), workers, collate_fn=list)
        assert migrator.get_stats()["calls_deferred"] > 0
    assert same(expected, got)
    assert all(type(sample["whole"]) is torch.Tensor for batch in got for sample in batch)


@pytest.mark.parametrize("workers", [0, 2])
def test_order_is_preserved_with_shuffling(workers: int) -> None:
    expected, _ = batches(Images(), workers, shuffle=True)
    with PipelineMigrator.from_plan(PLAN):
        got, _ = batches(Images(), workers, shuffle=True)
    assert same(expected, got)
    assert [number for _, numbers in got for number in numbers.tolist()] != list(range(22))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collate_function_of_the_program(workers: int) -> None:
    expected, _ = batches(Images(), workers, collate_fn=stacked)
    with PipelineMigrator.from_plan(PLAN):
        got, _ = batches(Images(), workers, collate_fn=stacked)
    assert same(expected, got)


def used(samples):
    """Goes on with what it stacked."""
    images = torch.stack([torch.as_tensor(image) for image, _ in samples])
    return images.permute(0, 2, 3, 1).mul(2.0), len(images), images.shape[0]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_collate_function_uses_its_batch(workers: int) -> None:
    expected, _ = batches(Images(), workers, collate_fn=used)
    with PipelineMigrator.from_plan(PLAN):
        got, _ = batches(Images(), workers, collate_fn=used)
    assert same(expected, got)


class OfTwoKinds(Dataset):
    """torch promotes the numbers of such a batch, or refuses it."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> np.ndarray:
        image = cv2.resize(load(index), (8, 8))
        return image if index % 2 else image.astype(np.float32)


def test_batches_of_two_number_formats() -> None:
    expected, _ = batches(OfTwoKinds(), 0)
    with PipelineMigrator.from_plan(PLAN):
        got, _ = batches(OfTwoKinds(), 0)
    assert same(expected, got)


@pytest.mark.parametrize("workers", [0, 1])
def test_samples_without_batches(workers: int) -> None:
    def samples():
        return list(DataLoader(Odd(), batch_size=None, num_workers=workers))

    expected = samples()
    with PipelineMigrator.from_plan(PLAN):
        got = samples()
    assert same(expected, got)
    assert type(got[0]["image"]) is torch.Tensor


class Held(Dataset):
    """Holds a function that is replaced; it travels to a new process by its name."""

    def __init__(self) -> None:
        self.function = cv2.resize

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> np.ndarray:
        return self.function(load(index), (8, 8))


def test_spawned_workers_record_as_forked_ones_do() -> None:
    def samples(dataset):
        return list(
            DataLoader(dataset, batch_size=3, num_workers=1, multiprocessing_context="spawn")
        )

    dataset = Held()
    expected = list(DataLoader(dataset, batch_size=3))
    with PipelineMigrator.from_plan(PLAN, roots=(dataset,)) as migrator:
        got = samples(dataset)
        assert migrator.get_stats()["calls_deferred"] == 3
    assert same(expected, got)
    assert dataset.function is cv2.resize


def test_workers_that_outlive_the_plan_send_whole_batches() -> None:
    loader = DataLoader(Images(), batch_size=4, num_workers=2, persistent_workers=True)
    with PipelineMigrator.from_plan(PLAN):
        iterator = iter(loader)
        next(iterator)
    rest = list(iterator)
    assert all(type(images) is torch.Tensor and images.dtype == torch.float32 for images, _ in rest)


def test_everything_around_the_loader_is_put_back() -> None:
    from torch.utils.data._utils import collate, fetch

    def held():
        return (
            dict(vars(cv2)), fetch._MapDatasetFetcher.fetch, fetch._IterableDatasetFetcher.fetch,
            dict(collate.default_collate_fn_map), torch.from_numpy, torch.as_tensor, torch.tensor,
        )  # fmt: skip

    before = held()
    with PipelineMigrator.from_plan(PLAN):
        assert held() != before
    assert held() == before
    assert all(vars(cv2)[name] is value for name, value in before[0].items())
