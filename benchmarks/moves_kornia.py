"""Moved operators and kornia's beside OpenCV: how far apart results are, and how long they take.

Run by bench_moves.py in an environment that has kornia; prints one JSON object per operator.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import cv2
import kornia
import numpy as np
import torch

from torchstone.dataflow import PipelineMigrator

ROUNDS = 7
IMAGES = 4
Operator = Callable[[np.ndarray], np.ndarray]
Kornia = Callable[[torch.Tensor], torch.Tensor]

OPERATORS: dict[str, tuple[str, Operator, Kornia]] = {
    "resize, linear": (
        "cv2.resize", lambda x: cv2.resize(x, (224, 224)),
        lambda t: kornia.geometry.resize(t, (224, 224)),
    ),
    "BGR to RGB": (
        "cv2.cvtColor", lambda x: cv2.cvtColor(x, cv2.COLOR_BGR2RGB), kornia.color.bgr_to_rgb,
    ),
    "BGR to grey": (
        "cv2.cvtColor", lambda x: cv2.cvtColor(x, cv2.COLOR_BGR2GRAY), kornia.color.bgr_to_grayscale,
    ),
    "flip": ("cv2.flip", lambda x: cv2.flip(x, 1), kornia.geometry.hflip),
    "Gaussian blur, 5 × 5": (
        "cv2.GaussianBlur", lambda x: cv2.GaussianBlur(x, (5, 5), 1.1),
        lambda t: kornia.filters.gaussian_blur2d(t, (5, 5), (1.1, 1.1)),
    ),
    "median blur, 3 × 3": (
        "cv2.medianBlur", lambda x: cv2.medianBlur(x, 3), lambda t: kornia.filters.median_blur(t, (3, 3)),
    ),
    "dilate, 3 × 3": (
        "cv2.dilate", lambda x: cv2.dilate(x, np.ones((3, 3), np.uint8)),
        lambda t: kornia.morphology.dilation(t, torch.ones(3, 3)),
    ),
}  # fmt: skip


def photograph(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (12, 16, 3), np.uint8)
    image = cv2.resize(coarse, (320, 256), interpolation=cv2.INTER_CUBIC)
    return cv2.add(image, rng.integers(0, 12, image.shape, np.uint8))


def by_kornia(operator: Kornia, image: np.ndarray) -> np.ndarray:
    """As a user would: to float and back, rounded."""
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    result = (operator(tensor)[0].permute(1, 2, 0) * 255).round().clamp(0, 255).byte().numpy()
    return result[..., 0] if result.shape[2] == 1 else result


def apart(expected: np.ndarray, got: np.ndarray) -> tuple[int, float]:
    gap = np.abs(expected.astype(int) - got.astype(int))
    return int(gap.max()), float((gap > 0).mean())


def seconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def main() -> None:
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    images = [photograph(seed) for seed in range(IMAGES)]
    for name, (function, original, moved) in OPERATORS.items():
        expected = [original(image) for image in images]
        plan = {"context_device_map": {function: "cuda:0"}}
        with PipelineMigrator.from_plan(plan, device="cpu", verify_rate=0):
            ours = [original(image) for image in images]
            our_seconds = seconds(lambda op=original: [op(image) for image in images])
        theirs = [by_kornia(moved, image) for image in images]
        plain = seconds(lambda op=original: [op(image) for image in images])
        their_seconds = seconds(lambda op=moved: [by_kornia(op, image) for image in images])
        row = {
            "operator": name, "kornia": kornia.__version__,
            "ours": max(apart(a, b) for a, b in zip(expected, ours, strict=True)),
            "theirs": max(apart(a, b) for a, b in zip(expected, theirs, strict=True)),
            "our_ratio": our_seconds / plain, "their_ratio": their_seconds / plain,
        }  # fmt: skip
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
