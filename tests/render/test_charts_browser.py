"""Charts in a real browser: what is under the pointer is what is in the data."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.measure import Measure
from torchstone.core.pictures import (
    Branch,
    Check,
    Document,
    Evidence,
    Heatmap,
    Lane,
    Lanes,
    Limit,
    Mark,
    Part,
    Plot,
    Series,
    Span,
    Stack,
    Strip,
    Table,
    Timeline,
    Tree,
    Wait,
)
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.render import render

pytestmark = pytest.mark.browser
HOW = Text("measured", "测得")
Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """A page with some pictures on its first screen."""
    pages: list[Page] = []
    problems: list[str] = []

    def make(*pictures: Evidence, width: int = 1400, height: int = 900) -> Page:
        answer = Answer(Text("All is well", "一切正常"), "good", pictures=pictures,
                        about=(Fact(Text("model", "模型"), "Net"),),
                        tiles=(Tile(Text("parameters", "参数"), "3"),))  # fmt: skip
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(render(Report("cost", answer=answer), "html"), "utf-8")
        page = browser.new_page(viewport={"width": width, "height": height})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("figure[data-drawn]")
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.close()
    assert problems == []


def spiked(count: int = 6000, at: int = 3217) -> Series:
    chance = random.Random(3)
    y = [2.2 - i / count + chance.random() / 10 for i in range(count)]
    y[at] = 6.93
    return Series(Text("loss", "损失"), tuple(map(float, range(count))), tuple(y), "", HOW,
                  marks=(float(at),), mark_names=(Text("loss spike", "损失尖峰"),))  # fmt: skip


def hover(page: Page, figure: Locator, share: float) -> str:
    box = figure.locator("svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
    return figure.locator("div.tip").inner_text()


def test_hover_shows_the_value_that_is_in_the_data(opened: Open) -> None:
    series = Series("loss", (0.0, 1.0, 2.0, 3.0), (5.0, 7.25, 6.0, 1.0), "", HOW)
    page = opened(Plot("Loss", (series,), "step", ""))
    figure = page.locator("figure")
    assert "7.25" in hover(page, figure, 0.36)
    assert "step 1" in hover(page, figure, 0.36)
    assert "1" in hover(page, figure, 0.999)
    figure.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "7.25" in figure.locator("div.tip").inner_text()


def test_the_spike_is_there(opened: Open) -> None:
    page = opened(Plot("Loss", (spiked(),), "step", ""))
    data = page.evaluate("document.querySelector('figure').values.series[0]")
    assert max(data["y"]) == 6.93
    assert len(data["y"]) < 3000
    top = page.evaluate("document.querySelector('path.curve').getBBox().y")
    assert top < 25, "the curve reaches the top of its chart"
    figure = page.locator("figure")
    box = figure.locator("line.alert").bounding_box()
    assert box is not None
    page.mouse.move(box["x"], box["y"] + 60)
    tip = figure.locator("div.tip").inner_text()
    assert "6.93" in tip
    assert "loss spike" in tip


def test_dragging_zooms_and_the_button_shows_all_again(opened: Open) -> None:
    page = opened(Plot("Loss", (spiked(),), "step", ""))
    before = page.locator("svg .tick").all_text_contents()
    box = page.locator("figure svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=4)
    page.mouse.up()
    assert page.locator("svg .tick").all_text_contents() != before
    page.locator("button.reset").click()
    assert page.locator("svg .tick").all_text_contents() == before


def test_the_legend_switches_series_and_axes_say_their_scale(opened: Open) -> None:
    x = (1.0, 10.0, 100.0)
    page = opened(Plot("Two", (Series("one", x, (1.0, 10.0, 1e4), "", HOW),
                               Series("two", x, (3.0, 2.0, 1.0), "", HOW)), "size", "", True, True))  # fmt: skip
    assert page.locator("path.curve").count() == 2
    page.locator(".legend button").first.click()
    assert page.locator("path.curve").count() == 1
    words = " ".join(page.locator("svg text").all_text_contents())
    assert "log scale" in words
    assert "10,000" not in page.locator("svg .tick").all_text_contents(), (
        "the axis follows what is left"
    )
    page.locator("#lang").click()
    assert "对数坐标" in " ".join(page.locator("svg text").all_text_contents())


def test_round_ticks_carry_units(opened: Open) -> None:
    series = Series("memory", (0.0, 1.0), (0.0, 3.1 * 2**30), "B", HOW)
    page = opened(Plot("Memory", (series,), "operator", "B"))
    ticks = page.locator("svg .tick").all_text_contents()
    assert {"0 B", "1 GiB", "2 GiB", "3 GiB"} <= set(ticks)


def test_what_is_no_number_is_marked(opened: Open) -> None:
    series = Series("loss", (0.0, 1.0, 2.0), (1.0, float("nan"), 2.0), "", HOW)
    page = opened(Plot("Loss", (series,), "step", ""))
    assert page.locator("path.nonfinite").count() == 1


def test_one_crosshair_over_all_charts_of_a_grid(opened: Open) -> None:
    plots = [
        Plot(name, (Series(name, (0.0, 1.0, 2.0), (1.0, 2.0, 3.0), "", HOW),), "step", "")
        for name in "abc"
    ]
    page = opened(*plots)
    hover(page, page.locator(".grid figure").first, 0.5)
    assert page.locator("line.cross[visibility=visible]").count() == 3


def test_the_flame_graph_zooms_searches_and_names_its_colours(opened: Open) -> None:
    leaf = Branch("fc", 30.0, group="Linear")
    root = Branch("Net", 100.0, (Branch("encoder", 60.0, (leaf, Branch("norm", 5.0, group="Norm")), "Encoder"),
                                 Branch("head", 40.0, group="Linear")), "Net")  # fmt: skip
    page = opened(Tree("FLOPs", root, "FLOP", HOW))
    assert set(page.locator(".flame-bar .legend > span").all_text_contents()) == {
        "Linear",
        "Norm",
        "Encoder",
        "Net",
    }
    wide = page.locator("g.node", has_text="encoder").bounding_box()
    page.locator("g.node", has_text="encoder").first.click()
    zoomed = page.locator("g.node", has_text="encoder").first.bounding_box()
    assert wide is not None
    assert zoomed is not None
    assert zoomed["width"] > wide["width"] * 1.4
    page.locator("g.node.up").click()
    assert page.locator("g.node", has_text="head").count() == 1
    page.locator(".flame-search").fill("head")
    assert page.locator("g.node:not(.dim)").count() == 1


def test_a_heat_map_has_names_an_axis_and_a_key(opened: Open) -> None:
    page = opened(Heatmap("Norms", ("layer.0", "layer.1"), ("0", "10", "20"), ((1.0, 2.0, None), (4.0, 8.0, 16.0)),
                          "", HOW, log=True, x_name=Text("step", "步")))  # fmt: skip
    words = page.locator("svg text").all_text_contents()
    assert {"step", "0", "1", "16 (log)"} <= set(words)
    assert [word for word in words if word.startswith("layer.")] == [
        "layer.0" * 2,
        "layer.1" * 2,
    ], "a name and its tooltip"
    page.locator("rect.cell").nth(4).hover()
    tip = page.locator("div.tip").inner_text()
    assert "layer.1" in tip
    assert "8" in tip


def test_bars_lanes_time_lines_strips_and_documents(opened: Open) -> None:
    page = opened(
        Stack("Memory", (Part("weights", 2.0**30), Part("activations", 2.0**29)), "B", "", (Limit("GPU", 2.0**31),)),
        Lanes("Ranks", (Lane("rank 0", (Mark(0, "all_reduce"), Mark(1, "barrier", "bad"))), Lane("rank 1", (Mark(0, "all_reduce"),))),
              (Wait(0, 1, "barrier"),)),
        Timeline("Steps", (Span("S01 coder", 0, 2, note="12 tokens", link="S01"), Span("S02 verify", 2, 1, "bad"))),
        Strip("Gates", (Check("build", "good"), Check("accuracy", "bad", "wrong"))),
        Document("S01", "x = 1\n", "python"),
        Table("Rows", ("name", "size"), (("a", 10), ("b", 9), ("c", 100))),
    )  # fmt: skip
    assert page.locator("line.limit").count() == 1
    assert page.locator("path.wait").count() == 1
    assert page.locator(".strip li.bad").inner_text().endswith("accuracy")
    page.locator("figure[data-kind=timeline] g.span").first.click()
    assert page.locator("details.more pre.document").is_visible()
    page.locator("th .sort", has_text="size").click()
    assert page.locator("tbody tr td:first-child").all_text_contents() == ["c", "a", "b"]
    page.locator("th .sort", has_text="size").click()
    assert page.locator("tbody tr td:first-child").all_text_contents() == ["b", "a", "c"]


_OVERLAPS = """() => [...document.querySelectorAll('figure svg')].flatMap(svg => {
      const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
      const found = [];
      boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
        if (p.left + 1 < q.right && q.left + 1 < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom) found.push(`${a} / ${b}`);
      }));
      return found;
    })"""


def test_nothing_overlaps_on_a_narrow_screen(opened: Open) -> None:
    page = opened(
        Plot("Loss", (spiked(), Series("other", (0.0, 5999.0), (0.0, 1e6), "", HOW)), "step", ""),
        Heatmap("Norms", tuple(f"encoder.layers.{i}.attention.out_proj" for i in range(6)), tuple(map(str, range(0, 480, 10))),
                tuple(tuple(float(i + j + 1) for j in range(48)) for i in range(6)), "", HOW),
        Stack("Memory", (Part("weights", 2.0**30),), "B", "", (Limit("GPU", 2.0**31),)),
        width=400,
    )  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    overlaps = page.evaluate(_OVERLAPS)
    assert overlaps == []


@pytest.mark.parametrize("width", [400, 1400])
def test_parts_are_seen_beside_limits_that_are_far_away(opened: Open, width: int) -> None:
    parts = (Part("weights", 2.0**23), Part("gradients", 2.0**23))
    limits = tuple(
        Limit(name, size * 2.0**30) for name, size in (("A100", 76), ("H100", 76), ("RTX", 22))
    )
    page = opened(Stack("Memory", parts, "B", "", limits), width=width)
    for rect in page.locator("figure[data-kind=stack] rect").all():
        box = rect.bounding_box()
        assert box is not None
        assert box["width"] > width / 4
    assert page.locator("figure[data-kind=stack] text.tick").all_text_contents() == ["RTX 22 GiB →", "A100, H100 76 GiB →"]  # fmt: skip
    assert page.evaluate(_OVERLAPS) == []


def test_a_large_report_is_folded_and_small(browser: Browser, tmp_path: Path) -> None:
    """What is folded is not laid out, which is what makes the first paint quick."""
    rows = tuple((f"module.{i}", i * 17 % 1000, float(i)) for i in range(10_000))
    table = Table("Rows", ("name", "a", "b"), rows)
    measure = Measure("rows", 1.0, "", HOW, Text("rows", "行"), evidence=(table,))
    path = tmp_path / "large.html"
    path.write_text(render(Report("cost", measures=(measure,)), "html"), "utf-8")
    assert path.stat().st_size < 5_000_000
    page = browser.new_page()
    page.goto(path.as_uri())
    assert not page.locator("details.more tbody tr").first.is_visible()
    page.locator("details.more > summary").click()
    assert page.locator("details.more tbody tr").first.is_visible()
    page.close()


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("count", [2, 7, 64])
def test_names_of_heat_map_columns_do_not_overlap(opened: Open, width: int, count: int) -> None:
    known = ("tensor", "row", "column", "128x128", "1x128", "block32", "self_attn.q_proj.weight")
    names = known[:count] if count <= len(known) else tuple(map(str, range(count)))
    rows = ("e4m3 amax", "int8 amax")
    values = tuple(tuple(float(c + r) for c in range(len(names))) for r in range(len(rows)))
    page = opened(Heatmap("Flushed", rows, names, values, "%", HOW), width=width)
    labels = page.locator("figure svg text.column")
    assert labels.count() >= min(count, len(known)) if count <= len(known) else labels.count() > 4
    boxes = [label.bounding_box() for label in labels.all()]
    for one, two in itertools.pairwise(boxes):
        assert one is not None
        assert two is not None
        assert one["x"] + one["width"] <= two["x"] + 0.5
