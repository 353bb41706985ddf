"""The graph of a pipeline in a real browser, small and large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from torchstone.core.answer import Answer
from torchstone.core.pictures import DataGraph, DataVertex, Link
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import render

pytestmark = pytest.mark.browser
NAMES = ("load", "cv2.resize", "cv2.cvtColor", "numpy.divide")
Open = Callable[..., Page]


def graph(count: int, *, folded: bool = True) -> DataGraph:
    """Chains of four operators, the inner two of which move."""
    vertices = tuple(
        DataVertex(
            NAMES[n % 4], n % 4 if folded else n, 1e-3 * (n % 4 + 1), 1000,
            ("cpu", "cuda:0" if n % 4 in (1, 2) else "cpu"), f"prepare.py:{n % 4 + 1}",
        )
        for n in range(count)
    )  # fmt: skip
    links = tuple(Link(n - 1, n) for n in range(count) if n % 4)
    stages = (Text("as traced", "追踪时"), Text("as planned", "按计划"))
    return DataGraph(Text("The pipeline", "数据管道"), vertices, links, stages)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    pages: list[Page] = []
    problems: list[str] = []

    def make(picture: DataGraph) -> Page:
        report = Report("flow", answer=Answer(Text("Done", "完成"), "good", pictures=(picture,)))
        path = tmp_path / "page.html"
        path.write_text(render(report, "html"), "utf-8")
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("figure[data-drawn]")
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.close()
    assert not problems


def boxes(page: Page) -> int:
    return int(page.get_attribute("figure[data-kind=data_graph]", "data-boxes") or 0)


def where(page: Page, label: str) -> tuple[float, float]:
    """The middle of a box, on the page."""
    found = page.evaluate(
        """(label) => {
            const state = document.querySelector("figure[data-kind=data_graph]").state;
            const named = state.graph.boxes.filter((one) => one.label === label);
            const box = named.sort((a, b) => Math.abs(a.x) - Math.abs(b.x))[0]; // one that is in view
            const [x, y] = ts.dataGraph.at(state, state.painted[0], box);
            const frame = state.canvas.getBoundingClientRect();
            return [frame.left + x, frame.top + y];
        }""",
        label,
    )
    return float(found[0]), float(found[1])


def test_a_click_opens_a_class_and_folds_it_again(opened: Open) -> None:
    page = opened(graph(40))
    assert boxes(page) == 4
    page.mouse.click(*where(page, "cv2.resize"))
    assert boxes(page) == 3 + 10
    page.mouse.click(*where(page, "cv2.resize"))
    assert boxes(page) == 4


def test_what_is_under_the_pointer_is_named(opened: Open) -> None:
    page = opened(graph(40))
    page.mouse.move(*where(page, "cv2.resize"))
    tip = page.locator("figure .tip").inner_text()
    assert "cv2.resize" in tip
    assert "×10" in tip
    assert "20 ms" in tip
    assert "prepare.py:2" in tip


def test_search_and_table(opened: Open) -> None:
    page = opened(graph(40))
    page.fill("input.flame-search", "cvt")
    assert "1 of 4 boxes match" in page.locator(".flame-bar").inner_text()
    page.get_by_role("button", name="table").click()
    rows = page.locator("figure tbody tr")
    assert rows.count() == 1
    assert rows.first.inner_text().split("\t")[:2] == ["cv2.cvtColor", "10"]
    assert "cuda:0" in rows.first.inner_text()
    page.fill("input.flame-search", "")
    assert rows.count() == 4
    page.keyboard.press("Escape")
    page.locator("#lang").click()
    assert "产生字节" in page.locator("figure thead").inner_text()


def test_before_and_after_stand_side_by_side_only_for_devices(opened: Open) -> None:
    page = opened(graph(8))
    count = "() => document.querySelector('figure[data-kind=data_graph]').state.painted.length"
    assert page.evaluate(count) == 2
    page.get_by_label("colour by").select_option("time")
    assert page.evaluate(count) == 1


@pytest.mark.parametrize(("count", "folded"), [(10, True), (1000, False), (10_000, False)])
def test_sizes(opened: Open, count: int, folded: bool) -> None:
    picture = graph(count, folded=folded)
    page = opened(picture)
    assert boxes(page) == (4 if folded else count)
    painted = page.evaluate(
        """() => {
            const canvas = document.querySelector("figure canvas");
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            let seen = 0;
            for (let i = 3; i < data.length; i += 4) if (data[i]) seen += 1;
            return seen;
        }"""
    )
    assert painted > 2000
    page.get_by_role("button", name="whole graph").click()
    page.get_by_role("button", name="zoom in").click()
    report = Report("flow", answer=Answer(Text("Done", "完成"), "good", pictures=(picture,)))
    assert len(render(report, "html").encode()) < 2_000_000
