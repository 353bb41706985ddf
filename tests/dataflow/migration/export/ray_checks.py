"""Pipelines on a real local Ray, compared with the plain loop; run with the Python that has it."""

# ruff: noqa: T201 - its answer is read by the test

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import cv2
import numpy as np
import ray
import torch
from cv2 import flip

from torchstone.dataflow import PipelineMigrator
from torchstone.dataflow.migration.export.ray_data import results_of
from torchstone.dataflow.migration.export.ray_script import ray_script
from torchstone.dataflow.plan import plan_from_data

COUNT = 12


def load(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 256, (40 + index % 3, 30, 3), np.uint8)


def three_functions(index: int) -> dict[str, object]:
    image = cv2.resize(load(index), (24, 20))
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    if index % 2:
        image = flip(image, 1)
    return {"image": (image.astype(np.float32) / 255.0).transpose(2, 0, 1), "index": index}


def one_function(index: int) -> tuple[np.ndarray, int]:
    """The next function does not move."""
    return cv2.pyrDown(cv2.resize(load(index), (24, 20))), index


class Steps:
    """An object that is called, with a method in C that takes real arrays only."""

    def __init__(self) -> None:
        self.size = (24, 20)

    def __call__(self, index: int) -> list[np.ndarray]:
        image = cv2.GaussianBlur(cv2.resize(load(index), self.size), (5, 5), 0)
        clahe = cv2.createCLAHE(2.0)
        return [image, clahe.apply(np.ascontiguousarray(image[..., 0]))]


def tensors(index: int) -> torch.Tensor:
    image = cv2.cvtColor(load(index)[:40], cv2.COLOR_BGR2GRAY)
    return torch.from_numpy(cv2.dilate(image, np.ones((3, 3), np.uint8))).float() / 255


def plan_for(*names: str) -> dict[str, object]:
    return {"context_device_map": dict.fromkeys(names, "cuda:0")}


PIPELINES = {
    "three": (three_functions, plan_for("cv2.resize", "cv2.cvtColor", "cv2.flip")),
    "one": (one_function, plan_for("one_function/cv2.resize")),
    "object": (Steps(), plan_for("cv2.resize", "cv2.GaussianBlur")),
    "tensors": (tensors, plan_for("tensors/cv2.cvtColor", "tensors/cv2.dilate")),
}


def same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray | torch.Tensor):
        alike = type(one) is type(other) and one.dtype == other.dtype
        return alike and np.array_equal(np.asarray(one), np.asarray(other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return one == other


def exported(folder: Path) -> bool:
    """The script that `flow export --ray` writes, imported and run."""
    (folder / "prepared.py").write_text(
        "import cv2\nimport numpy as np\n\n\ndef prepare(index):\n"
        "    image = np.full((30 + int(index), 40, 3), int(index), np.uint8)\n"
        "    return cv2.flip(cv2.resize(image, (16, 12)), 1)\n"
    )
    plan = plan_from_data(plan_for("prepare/cv2.resize", "prepare/cv2.flip"))
    (folder / "exported.py").write_text(ray_script(plan, "prepared:prepare", 4))
    sys.path.insert(0, str(folder))
    prepare = importlib.import_module("prepared").prepare
    rows = results_of(importlib.import_module("exported").pipeline(range(6), cpu_workers=1))
    return same([prepare(index) for index in range(6)], rows)


def main(folder: str) -> None:
    expected = {name: list(map(make, range(COUNT))) for name, (make, _) in PIPELINES.items()}
    environment = {"env_vars": {"PYTHONPATH": folder}}
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    found: dict[str, bool] = {}
    for name, (make, plan) in PIPELINES.items():
        migrator = PipelineMigrator.from_plan(plan)
        dataset = migrator.to_ray(make, range(COUNT), batch_size=4, cpu_workers=1)
        found[name] = same(expected[name], results_of(dataset))
    found["exported"] = exported(Path(folder))
    print(json.dumps(found))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
