"""The pretend accelerator behaves as a device does; each check runs once, in one child process."""

from __future__ import annotations

import subprocess
import sys


def test_all_checks_pass_in_a_process_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.pretend_checks"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 6
