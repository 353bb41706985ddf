"""Migration to an accelerator: each check of `device_checks` runs once, in one child process."""

from __future__ import annotations

import subprocess
import sys


def test_all_checks_pass_in_a_process_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.dataflow.migration.device_checks"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 7
