"""The page in a real browser: no network, filter, search, keyboard, theme, language, no overflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, FloatRect, Locator, Page, Request

from tests.samples import finding, full_report
from torchstone.core.answer import Answer, Tile
from torchstone.core.finding import Severity
from torchstone.core.pictures import Table
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import render

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    many = Report(
        "check",
        tuple(
            finding(
                line,
                f"{line:016x}",
                severity=(Severity.HIGH, Severity.MEDIUM, Severity.LOW)[line % 3],
            )
            for line in range(1, 31)
        ),
    )
    report = many + full_report()
    path = tmp_path / "report.html"
    path.write_text(render(report, "html"), "utf-8")
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    opened = context.new_page()
    problems: list[str] = []
    requests: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    def on_request(request: Request) -> None:
        requests.append(request.url)

    opened.on("console", on_console)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", on_request)
    opened.goto(path.as_uri())
    yield opened
    assert problems == []
    assert [url for url in requests if not url.startswith("file:")] == []
    context.close()


def shown(page: Page) -> int:
    return page.locator(".finding:visible").count()


def test_search_narrows(page: Page) -> None:
    everything = shown(page)
    assert everything >= 30
    page.keyboard.press("/")
    page.keyboard.type("no such words")
    assert shown(page) == 0
    page.keyboard.press("Escape")
    assert shown(page) == everything
    assert page.locator("#shown").inner_text() == f"{everything} of {everything} shown"


def test_levels_filter_by_mouse_and_key(page: Page) -> None:
    page.locator("input[name=level][value=LOW]").uncheck()
    assert page.locator(".finding.low:visible").count() == 0
    assert page.locator(".finding.high:visible").count() > 0
    page.locator("body").press("1")
    assert page.locator(".finding.high:visible").count() == 0


def test_fixable_only(page: Page) -> None:
    page.locator("#fixable").check()
    assert shown(page) == 1


def test_keyboard_walks_and_opens(page: Page) -> None:
    body = page.locator("body")
    body.press("j")
    body.press("j")
    current = page.locator(".finding.current")
    assert current.count() == 1
    assert not current.evaluate("node => node.open")
    page.keyboard.press("o")
    assert current.evaluate("node => node.open")
    assert current.locator("pre.snippet mark").inner_text() == "x.half()"


def test_theme_and_language_switch(page: Page) -> None:
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.locator(".what span[lang=zh]").first.is_hidden()
    page.locator("#lang").click()
    assert page.locator(".what span[lang=zh]").first.is_visible()
    assert page.locator(".what span[lang=en]").first.is_hidden()


def test_dark_is_followed(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(full_report(), "html"), "utf-8")
    colours = set()
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        opened = context.new_page()
        opened.goto(path.as_uri())
        colours.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert len(colours) == 2


def test_what_the_filters_leave_is_counted_everywhere(page: Page) -> None:
    page.locator("input[name=level][value=LOW]").uncheck()
    left = shown(page)
    assert page.locator("#shown").inner_text().startswith(f"{left} of")
    chips = [int(item.inner_text()) for item in page.locator(".chip[data-level] b").all()]
    assert sum(chips) == left
    assert chips[2] == 0
    for chart in page.locator(".bars").all():
        assert sum(int(bar.inner_text()) for bar in chart.locator(".bar > b").all()) == left


def test_an_empty_search_says_so_and_can_be_cleared(page: Page) -> None:
    page.locator("#search").fill("no such words")
    assert page.locator("#none").is_visible()
    page.locator("#clear").click()
    assert shown(page) > 30
    assert page.locator("#none").is_hidden()


def test_no_language_is_mixed_into_the_other(page: Page) -> None:
    def visible() -> str:
        text: str = page.evaluate(
            "document.querySelector('nav').innerText"
            " + [...document.querySelectorAll('[placeholder],[title]')]"
            ".filter(e => !e.closest('pre,.bars')).map(e => (e.placeholder ?? '') + e.title).join(' ')"
        )
        return text.replace("中 / EN", "")

    assert not any("\u4e00" <= char <= "\u9fff" for char in visible())
    page.locator("#lang").click()
    assert "search" not in visible()
    assert "搜索" in visible()


def test_bar_click_searches(page: Page) -> None:
    page.locator(".bar:visible").first.click()
    assert page.locator("#search").input_value() != ""


@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_flows_out_sideways(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.locator("body").press("e")
    over = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert over <= 0


@pytest.mark.parametrize(("width", "first"), [(390, ".lines"), (1100, ".tiles")])
def test_on_a_phone_the_first_problem_comes_before_the_tiles(
    browser: Browser, tmp_path: Path, width: int, first: str
) -> None:
    tiles = tuple(Tile(Text(name, name), "1", Text("note", "note")) for name in ("a", "b"))
    lines = (Text("the first problem", "第一个问题"),)
    rows = tuple((f"a/long/path/that/has/no/space_{n}.py", "a reason of some length") for n in "12")
    table = Table(Text("Programs", "程序"), (Text("program", "程序"), Text("why", "原因")), rows)
    answer = Answer(
        Text("1 problem", "1 个问题"), "bad", tiles=tiles, lines=lines, pictures=(table,)
    )
    path = tmp_path / "phone.html"
    path.write_text(render(Report("review", answer=answer), "html"), "utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())

    def box(place: Locator) -> FloatRect:
        found = place.bounding_box()
        assert found is not None
        return found

    tops = {name: box(page.locator(f".answer>{name}"))["y"] for name in (".lines", ".tiles")}
    assert min(tops, key=lambda name: tops[name]) == first
    cells = page.locator(".answer td").all()[:2]
    assert all(box(cell)["width"] >= 90 for cell in cells)  # none is squeezed out
    page.close()


def test_every_picture_is_drawn(page: Page) -> None:
    page.locator("body").press("e")
    for figure in page.locator("figure[data-kind]").all():
        figure.scroll_into_view_if_needed()
    page.wait_for_selector("figure svg path.curve", state="attached")
    for name in (
        "figure svg path.curve",
        "figure svg rect.cell",
        "table",
        "pre.diff .added",
        "pre.command",
    ):
        page.locator(name).first.scroll_into_view_if_needed()
        assert page.locator(name).first.is_visible(), name
    page.locator("#help").click()
    assert page.locator("dialog#keys").is_visible()
