"""The migration on OpenCV 4.8, 4.10, 4.12 and 4.14 as on the 5.x of this environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HERE = "tests/dataflow/migration"
TESTS = (
    "test_every_call_is_counted.py",
    "test_loaders.py",
    "test_odd_calls.py",
    "test_first_example.py",
    "test_traced_here_run_there.py",
)
VERSIONS = {
    "4.8.1.78": ("numpy==1.26.4",),  # made before numpy 2
    "4.10.0.84": (),
    "4.12.0.88": (),
    "4.14.0.94": (),
}


@pytest.mark.side
@pytest.mark.parametrize("version", VERSIONS)
def test_on_another_opencv(version: str) -> None:
    package = f"opencv-contrib-python-headless=={version}"  # not the name that is pinned here
    make = [sys.executable, "scripts/side_environment.py", f".venv-cv2-{version}", "--no-deps"]
    made = subprocess.run(
        [*make, package, *VERSIONS[version]], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    python = made.stdout.strip().splitlines()[-1]
    tests = [*(f"{HERE}/{name}" for name in TESTS), f"{HERE}/moves/test_catalogue.py", "-k", "not numpy and not torch"]  # fmt: skip
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
