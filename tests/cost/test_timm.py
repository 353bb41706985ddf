"""`cost timm:NAME`, in an environment that has timm and a torchvision of another build.

torchvision's wheel fails beside a CPU torch, and then breaks transformers' import: it must not
come into the main environment. One beside it (3 s, 40 MB) sees all of the main one's packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from benchmarks.cost_models import resnet50, vit

ROOT = Path(__file__).parents[2]
MAKE = [sys.executable, "scripts/side_environment.py", ".venv-timm", "--no-deps"]


@pytest.fixture(scope="module")
def timm_python() -> str:
    made = subprocess.run(
        [*MAKE, "timm", "torchvision", "pillow"], cwd=ROOT, capture_output=True, text=True
    )
    if made.returncode:
        if os.environ.get("CI"):
            pytest.fail(f"timm could not be installed: {made.stderr}")
        pytest.skip(f"timm could not be installed (no network?): {made.stderr.strip()[-200:]}")
    return made.stdout.strip().splitlines()[-1]


def cost(python: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "torchstone", "cost", *words]
    return subprocess.run(command, capture_output=True, text=True)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {item["name"]: item["value"] for item in json.loads(done.stdout)["measures"]}


@pytest.mark.slow
def test_torchvision_is_really_broken_there(timm_python: str) -> None:
    """The reason for the repair: if this changes, the repair and this environment can go."""
    done = subprocess.run([timm_python, "-c", "import torchvision"], capture_output=True, text=True)
    if done.returncode == 0:
        pytest.skip("this torchvision was built for this torch")
    assert "operator torchvision::" in done.stderr


@pytest.mark.slow
def test_a_timm_model_by_name(timm_python: str) -> None:
    found = figures(
        cost(timm_python, "timm:resnet50", "--input", "1,3,224,224", "--format", "json")
    )
    assert found["params"] == resnet50().parameters
    assert found["flops"] == resnet50().forward


@pytest.mark.slow
def test_its_inputs_are_known_and_its_backward_too(timm_python: str) -> None:
    found = figures(cost(timm_python, "timm:vit_base_patch16_224", "--train", "--format", "json"))
    assert found["params"] == vit().parameters
    assert found["forward_flops"] == vit().forward
    assert found["backward_flops"] == vit().backward


@pytest.mark.slow
def test_transformers_works_beside_that_torchvision(timm_python: str) -> None:
    done = cost(timm_python, "hf:ViTForImageClassification?num_labels=1000", "--format", "json")
    assert figures(done)["flops"] == vit().forward


@pytest.mark.slow
def test_a_misspelt_name_is_answered_with_the_right_one(timm_python: str) -> None:
    done = cost(timm_python, "timm:resnet5O")
    assert done.returncode == 2
    assert "resnet50" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(find_spec("timm") is not None, reason="timm is installed here")
def test_without_timm_the_error_says_what_to_do() -> None:
    done = cost(sys.executable, "timm:resnet50", "--input", "1,3,224,224", "--format", "json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "No module named 'timm'" in done.stderr
    assert "environment of its own" in done.stderr
    assert "install torchstone torch torchvision timm" in done.stderr
    assert "Traceback" not in done.stderr
