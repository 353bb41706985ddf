"""`flow`: moved operators beside their originals, and a real pipeline before and after."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from torchstone.dataflow import EnhancedTracer, OptimizerManager, PipelineMigrator
from torchstone.dataflow.device.profile import DeviceProfile

ROOT = Path(__file__).parent.parent
CALLS = 500
CV2_4 = "opencv-contrib-python-headless==4.14.0.94"  # another name than the pinned one of 5.x
IMAGES = 1000
ROUNDS = 3
KORNIA = ("kornia==0.9.0", "kornia_rs==0.2.0")
MOVED = "cv2.resize cv2.cvtColor cv2.flip cv2.GaussianBlur".split()


def run() -> str:
    return "\n".join(["## flow: moved operators\n", _equivalence(), _beside_kornia(), _pipeline()])


# -- equivalence


def _equivalence() -> str:
    found = {"5.x": _rows(sys.executable, "")}
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "side_environment.py"), ".venv-cv4", "--no-deps", CV2_4],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if made.returncode == 0:
        found["4.x"] = _rows(made.stdout.strip().splitlines()[-1], "cv2")
    parts = [_table(*rows) for rows in found.values()]
    if "4.x" not in found:
        parts.append("OpenCV 4.x could not be installed here.\n")
    return "\n".join(parts)


def _rows(python: str, prefix: str) -> tuple[str, list[dict[str, Any]]]:
    command = [python, str(ROOT / "benchmarks" / "moves_equivalence.py"), str(CALLS), prefix]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    first, *rest = [json.loads(line) for line in done.stdout.splitlines()]
    return first["cv2"], rest


def _table(version: str, rows: list[dict[str, Any]]) -> str:
    exact = [row for row in rows if row["exact"]]
    others = [row for row in rows if not row["exact"]]
    bad = [row for row in rows if row["equal"] < row["calls"]]
    few = [row for row in rows if row["calls"] < CALLS]
    lines = [
        f"### Entries beside their originals, OpenCV {version}\n",
        f"{len({row['function'] for row in rows})} functions, {len(rows)} cases (kinds of calls), {CALLS} random calls a case.\n",
        "| cases | declared | as declared | calls |",
        "|---|---|---|---|",
        f"| {len(exact)} | equal in every bit | {sum(row['equal'] == row['calls'] for row in exact)} | {sum(row['calls'] for row in exact):,} |",
        f"| {len(others)} | within a tolerance | {sum(row['equal'] == row['calls'] for row in others)} | {sum(row['calls'] for row in others):,} |",
        "",
    ]
    lines += [
        f"- not as declared: {row['function']} ({row['case']}): {row['wrong']}" for row in bad
    ]
    lines += [f"- only {row['calls']} calls: {row['function']} ({row['case']})" for row in few]
    inexact = [
        row for row in others if row["function"].startswith("cv2") and "uint8" in row["case"]
    ]
    lines += [
        f"- within one: {row['function']} ({row['case']}), largest difference {row['largest']:g}"
        for row in inexact
    ]
    return "\n".join([*lines, ""])


# -- kornia


def _beside_kornia() -> str:
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "side_environment.py"), ".venv-kornia", "--no-deps", *KORNIA],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if made.returncode != 0:
        return "kornia could not be installed here.\n"
    python = made.stdout.strip().splitlines()[-1]
    command = [python, str(ROOT / "benchmarks" / "moves_kornia.py")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return kornia_table([json.loads(line) for line in done.stdout.splitlines()])


def kornia_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"### Beside kornia {rows[0]['kornia']}, uint8 photographs\n",
        "| operator | moved: largest difference from OpenCV | kornia | pixels that differ | moved: CPU time, ratio to OpenCV | kornia |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['operator']} | {row['ours'][0]} | {row['theirs'][0]} | {row['theirs'][1]:.2%} | {row['our_ratio']:.0f} | {row['their_ratio']:.0f} |"
        for row in rows
    ]
    note = "\nkornia works on floats and is rounded back here. One thread each; both are made for a device, and on the CPU neither pays.\n"
    return "\n".join(lines) + "\n" + note


# -- a pipeline


class Photographs(Dataset):
    """Decode, resize, colour, augment, normalise."""

    def __init__(self) -> None:
        self.files = [_encoded(index) for index in range(IMAGES)]

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        image = cv2.imdecode(self.files[index], cv2.IMREAD_COLOR)
        image = cv2.resize(image, (224, 224))
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        if np.random.rand() < 0.5:
            image = cv2.flip(image, 1)
        if np.random.rand() < 0.2:
            image = cv2.GaussianBlur(image, (5, 5), 0)
        image = image.astype(np.float32) / 255.0
        image = (image - MEAN) / STD
        return image.transpose(2, 0, 1), index


MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def _encoded(index: int) -> np.ndarray:
    """Smooth colours with noise: JPEG files of the size of small photographs."""
    rng = np.random.default_rng(index)
    coarse = rng.integers(0, 256, (12, 16, 3), np.uint8)
    image = cv2.resize(coarse, (320 + index % 5, 256), interpolation=cv2.INTER_CUBIC)
    noise = rng.integers(0, 12, image.shape, np.uint8)
    return cv2.imencode(".jpg", cv2.add(image, noise))[1]


def _run_loader(dataset: Photographs) -> tuple[list[torch.Tensor], float]:
    torch.manual_seed(1)
    loader = DataLoader(dataset, batch_size=32, num_workers=2, shuffle=True)
    start = time.perf_counter()
    batches = [images for images, _ in loader]
    return batches, time.perf_counter() - start


def _pipeline() -> str:
    dataset = Photographs()
    plan = {"context_device_map": dict.fromkeys(MOVED, "cuda:0")}
    _run_loader(dataset)
    plain, moved = [], []
    for _ in range(ROUNDS):
        expected, seconds = _run_loader(dataset)
        plain.append(seconds)
        with PipelineMigrator.from_plan(plan, device="cpu") as migrator:
            got, seconds = _run_loader(dataset)
        moved.append(seconds)
    equal = len(expected) == len(got) and all(map(torch.equal, expected, got))
    stats = migrator.get_stats()
    speeds, kept = _plan_by_measured_speeds(dataset, plan)
    ratio = min(moved) / min(plain)
    verdict = "moving does not pay here" if ratio > 1 else "moving pays here"
    return (
        f"### A pipeline of {IMAGES:,} images (decode, resize, colour, augment, normalise; DataLoader with 2 workers)\n\n"
        f"| | images / s (best of {ROUNDS}) |\n|---|---|\n"
        f"| as written | {IMAGES / min(plain):.0f} |\n"
        f"| moved to torch kernels on `cpu`, in batches in the main process | {IMAGES / min(moved):.0f} |\n\n"
        f"Batches equal in every bit: {'yes' if equal else 'NO'} ({len(got)} batches). "
        f"Calls moved {stats['calls_migrated'] + stats['calls_deferred']:,}, fallen back {stats['calls_fallback']:,}. "
        f"{ratio:.2f} × the time: {verdict}. Measured speed on `cpu`, times that of OpenCV: {speeds}. "
        f"A plan made with these speeds moves {kept or 'nothing'}.\n"
    )


def _plan_by_measured_speeds(dataset: Photographs, plan: dict[str, Any]) -> tuple[str, str]:
    """What the planner decides once the speeds of the moved functions are known."""
    with PipelineMigrator.from_plan(plan, device="cpu", defer=False, verify_rate=1) as migrator:
        for index in range(64):
            dataset[index]
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    for index in range(64):
        dataset[index]
    tracer.stop_tracing()
    profile = DeviceProfile("cpu", 1e15, 0.0, 0.0, speedups=migrator.speedups())
    manager = OptimizerManager(k=2)
    result = manager.optimize(tracer.dag_builder.dag)
    made = manager.get_best_plan(result["coarsened_dag"], 1, device="cuda:0", profile=profile)
    speeds = ", ".join(f"{name} {speed:.2g}" for name, speed in migrator.speedups().items())
    moved = sorted({op["function"] for op in made["operators"] if op["device"] != "cpu"})
    return speeds, ", ".join(name for name in moved if name in MOVED)


if __name__ == "__main__":
    print(run())
