"""Pipelines that the tests trace: they live in a file of their own, as a user's would."""

from __future__ import annotations

import threading

import cv2
import numpy as np
from torch.utils.data import Dataset

IMAGE = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)


def image_pipeline(images):
    results = []
    for img in images:
        resized = cv2.resize(img, (24, 24))
        rgb = cv2.cvtColor(resized, cv2.COLOR_BGR2RGB)
        normalized = rgb / 255.0
        results.append(normalized)
    return results


def fails(image):
    small = cv2.resize(image, (8, 8))
    return small.reshape(5, 5)


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def shrink(image, depth):
    if depth == 0:
        return image
    return shrink(cv2.resize(image, None, fx=0.5, fy=0.5), depth - 1)


def frames(count):
    for _ in range(count):
        yield cv2.flip(IMAGE, 0)


def interrupted(image):
    cv2.flip(image, 0)
    raise KeyboardInterrupt


def long_list():
    numbers = list(range(200_000))
    return np.array(numbers).sum()


class Slotted:
    """Cannot be referenced weakly."""

    __slots__ = ("image",)

    def __init__(self, image):
        self.image = image


def through_slots():
    held = Slotted(cv2.flip(IMAGE, 0))
    return cv2.resize(held.image, (4, 4))


def in_thread(done: threading.Event, go: threading.Event):
    done.set()
    go.wait(10)
    return cv2.flip(IMAGE, 0)


class Images(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        image = self.load(index)
        return self.prepare(image)

    def load(self, index):
        return np.full((16, 16, 3), index, np.float32)

    def prepare(self, image):
        image = cv2.resize(image, (8, 8))
        return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _measure(items):
    return len(items)


def length_of(items):
    return _measure(items)
