"""One browser for all tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        # in CI a missing browser is a failure: `make setup` installs one
        if os.environ.get("CI"):
            pytest.fail("no chromium: run `make setup` as root, or install chromium")
        pytest.skip("no chromium on this machine: install it, or run `make setup` as root")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
             "--disable-component-update", "--no-first-run", "--disable-quic"]  # fmt: skip
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=flags)
        yield made
        made.close()
