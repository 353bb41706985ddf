"""A plan as a Ray Data pipeline; on a real local Ray in an environment of its own (500 MB)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.dataflow import PipelineMigrator
from torchstone.dataflow.migration.export.ray_data import RayOptions, pool_sizes
from torchstone.dataflow.plan import plan_from_data

ROOT = Path(__file__).parents[3]
MAKE = [sys.executable, "scripts/side_environment.py", ".venv-ray", "ray[data]==2.60.0"]


@pytest.mark.side
def test_results_are_those_of_the_local_run(tmp_path: Path) -> None:
    made = subprocess.run(MAKE, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    python = made.stdout.strip().splitlines()[-1]
    words = [python, "-m", "tests.dataflow.migration.export.ray_checks", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    pipelines = ("three", "one", "object", "tensors", "exported")
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(pipelines, True)


def plan_with(cpu: float, device: float):
    operators = [
        {"context": "cv2.imdecode", "function": "cv2.imdecode", "device": "cpu", "cpu_seconds": cpu},
        {"context": "cv2.resize", "function": "cv2.resize", "device": "cuda:0", "cpu_seconds": 9.0, "device_seconds": device},
    ]  # fmt: skip
    return plan_from_data({"context_device_map": {"cv2.resize": "cuda:0"}, "operators": operators})


@pytest.mark.parametrize(
    ("cpu", "device", "cpus", "expected"),
    [(8.0, 2.0, 16, (4, 1)), (8.0, 0.1, 16, (15, 1)), (1.0, 5.0, 16, (1, 1))],
)
def test_pools_are_sized_by_the_rates_of_the_plan(
    cpu: float, device: float, cpus: int, expected: tuple[int, int]
) -> None:
    sizes = pool_sizes(plan_with(cpu, device), RayOptions(), cpus)
    assert (sizes.cpu, sizes.device) == expected


def test_given_sizes_win_and_a_plan_without_rates_uses_the_machine() -> None:
    bare = plan_from_data({"context_device_map": {"cv2.resize": "cuda:0"}})
    assert pool_sizes(bare, RayOptions(), 8).cpu == 7
    assert pool_sizes(bare, RayOptions(cpu_workers=3, device_workers=2), 8).cpu == 3


@pytest.mark.parametrize("missing", ["ray", "pyarrow"])
def test_a_package_that_is_missing_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ray itself may be there without what Ray Data needs."""
    for name in ("ray", "ray.data", "pyarrow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "pyarrow":
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "__init__.py").write_text("")
        (tmp_path / "ray" / "data.py").write_text("import pyarrow\n")
        monkeypatch.syspath_prepend(str(tmp_path))
    migrator = PipelineMigrator.from_plan({"context_device_map": {"cv2.resize": "cuda:0"}})
    with pytest.raises(InputError, match=rf"'{missing}'.*torchstone\[ray\]"):
        migrator.to_ray(abs, [1])
