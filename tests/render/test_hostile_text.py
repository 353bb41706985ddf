"""Names, messages and values from analysed projects stay text on the page, whatever they hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.samples import full_report
from torchstone.core.text import Text
from torchstone.render import render

pytestmark = pytest.mark.browser

EVIL = (
    "</script></title></style></textarea>--><img src=x onerror='window.ran=1'><svg onload='window.ran=2'>"
    "\"'`><a href='javascript:window.ran=3'>{0}</a>${window.ran=4}\u2028\\"
)
_FIXED = {"state", "tone", "tool", "path", "language", "kind", "safety"}
"""Words of a small set that the program itself chooses, and paths, which have a test of their own."""


def hostile(value: Any, name: str = "") -> Any:
    """The same value with the hostile text in front of every text."""
    if isinstance(value, Enum) or name in _FIXED:
        return value
    if isinstance(value, str):
        return EVIL + value
    if isinstance(value, tuple):
        return tuple(hostile(item) for item in value)
    if isinstance(value, Mapping):
        return {key: hostile(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = {
            item.name: hostile(getattr(value, item.name), item.name)
            for item in dataclasses.fields(value)
            if item.init
        }
        return type(value)(**made)
    return value


def test_no_text_of_a_report_runs_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    report = full_report()
    assert isinstance(hostile(Text("a", "b")), Text)
    evil = dataclasses.replace(
        report,
        findings=hostile(report.findings), measures=hostile(report.measures), gaps=hostile(report.gaps),
        answer=hostile(report.answer), command=EVIL, subject=EVIL,
    )  # fmt: skip
    path = tmp_path / "evil.html"
    path.write_text(render(evil, "html"), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for figure in page.locator("figure[data-kind]").all():
        figure.scroll_into_view_if_needed()
        figure.locator("svg, canvas").first.wait_for()
        figure.hover(force=True)
    page.locator("button", has_text="EN").first.click()
    for link in page.locator("a[href]").all():
        assert not (link.get_attribute("href") or "").lower().startswith("javascript:")
    assert page.evaluate("window.ran") is None
    assert page.locator("img").count() == 0
    assert "window.ran" in page.locator("body").inner_text(), "the text itself is shown"
    page.close()
