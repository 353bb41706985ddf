"""A pipeline on a real local Ray; run with the Python that has it."""

# ruff: noqa: T201 - its answer is read by the test

from __future__ import annotations

import json

import cv2
import numpy as np
import ray
from cv2 import flip

from torchstone.dataflow import PipelineMigrator
from torchstone.dataflow.export.ray_data import results_of

PLAN = {
    "context_device_map": {"cv2.resize": "cuda:0", "cv2.cvtColor": "cuda:0", "cv2.flip": "cuda:0"}
}


def prepare(index: int) -> dict[str, object]:
    image = np.random.default_rng(index).integers(0, 256, (40 + index % 3, 30, 3), np.uint8)
    image = cv2.resize(image, (24, 20))
    image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    if index % 2:
        image = flip(image, 1)
    return {
        "image": (image.astype(np.float32) / 255.0).transpose(2, 0, 1),
        "index": index,
        "mean": cv2.mean(image),
    }


def main() -> None:
    expected = [prepare(index) for index in range(40)]
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    dataset = PipelineMigrator.from_plan(PLAN).to_ray(
        prepare, range(40), batch_size=8, cpu_workers=1
    )
    got = sorted(results_of(dataset), key=lambda row: row["index"])
    same = len(got) == 40 and all(
        np.array_equal(one["image"], other["image"])
        and one["image"].dtype == other["image"].dtype
        and one["mean"] == other["mean"]
        for one, other in zip(expected, got, strict=True)
    )
    stages = str(dataset.stats())
    print(
        json.dumps(
            {
                "same": same,
                "separate": "RecordStage" in stages and "->MapBatches(ComputeStage" not in stages,
            }
        )
    )
    ray.shutdown()


if __name__ == "__main__":
    main()
