"""The page of a review in a real browser: five tasks, copy buttons, narrow screens, both languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.conductor.conftest import MODEL, TRAIN
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.review import run_review
from torchstone.sandbox.run import is_confined

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not is_confined(), reason="this system offers no walls"),
]
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.tasks > ol > li')].map(item => item.getBoundingClientRect());
  return boxes.slice(1).some((box, n) => box.top < boxes[n].bottom - 1) || boxes.some(box => box.right > innerWidth + 1);
}"""


@pytest.fixture(scope="module", params=["en", "zh"])
def page_file(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    root = tmp_path_factory.mktemp("project")
    (root / "model.py").write_text(MODEL)
    (root / "train.py").write_text(TRAIN)
    out = tmp_path_factory.mktemp("run") / "out"
    options = ReviewOptions(path=str(root), depth="quick", tools=("lint",))
    run_review(options, str(out), request.param)
    return request.param, out / "report.html"


@pytest.mark.parametrize("width", [400, 1400])
def test_the_first_screen_says_what_to_do(
    browser: Browser, page_file: tuple[str, Path], width: int
) -> None:
    lang, path = page_file
    page = browser.new_page(viewport={"width": width, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector(".tasks li .copy")
    tasks = page.locator(".tasks > ol > li")
    assert tasks.count() == 3
    assert "git apply" in tasks.first.inner_text()
    assert ("Fix first" in page.inner_text("body")) == (lang == "en")
    assert ("优先修复" in page.inner_text("body")) == (lang == "zh")
    if width == 1400:
        assert tasks.last.bounding_box()["y"] < 900  # type: ignore[index]
    assert not page.evaluate(OVERLAPS)
    assert not errors
    page.close()
