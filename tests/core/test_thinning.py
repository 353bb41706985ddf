"""Whatever is left out of a long series, its extremes are drawn: in a page and in a terminal."""

from __future__ import annotations

import json
import math
import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from torchstone.core.pictures import Plot, Series
from torchstone.core.thinning import columns_of, thinned
from torchstone.render import draw
from torchstone.render.draw._scale import BLOCKS, spark
from torchstone.render.style import Style

VALUES = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf])), max_size=400
)
SIZES = st.integers(4, 60)


def finite(values: list[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


@given(VALUES, SIZES, st.sets(st.integers(0, 399), max_size=3))
def test_extremes_stay(values: list[float], most: int, marks: set[int]) -> None:
    marks = {place for place in marks if place < len(values)}
    kept = thinned(values, most, marks)
    assert kept == sorted(set(kept))
    assert marks <= set(kept)
    shown = [values[i] for i in kept]
    if finite(values):
        assert (min(finite(shown)), max(finite(shown))) == (
            min(finite(values)),
            max(finite(values)),
        )
    for odd in (math.inf, -math.inf):
        assert (odd in shown) == (odd in values)
    assert any(map(math.isnan, shown)) == any(map(math.isnan, values))


@given(VALUES, SIZES)
def test_columns_hold_the_extremes(values: list[float], width: int) -> None:
    shown = columns_of(values, width)
    assert len(shown) == min(len(values), width)
    good, all_good = finite([v for v in shown if v is not None]), finite(values)
    room = len(shown) - sum(1 for v in shown if v is not None and not math.isfinite(v))
    if all_good and room >= 2:
        assert (min(good), max(good)) == (min(all_good), max(all_good))


@given(st.lists(st.floats(0, 10), min_size=80, max_size=3000))
def test_the_terminal_shows_both_ends(values: list[float]) -> None:
    row = spark(values, 60)
    assert BLOCKS[0] in row
    assert (BLOCKS[-1] in row) == (max(values) > min(values))


@given(st.integers(0, 9999), st.integers(1700, 3000), st.integers(0, 1699))
def test_a_page_holds_every_extreme_and_every_alert(seed: int, count: int, alert: int) -> None:
    chance = Random(seed)
    values = [chance.expovariate(1.0) for _ in range(count)]
    series = Series(
        "loss", tuple(map(float, range(len(values)))), tuple(values), "", "", marks=(float(alert),)
    )
    page = draw.html(Plot("Loss", (series,), "step"), Style())
    found = re.search(r"application/json\">(.*?)</script>", page)
    assert found is not None
    data = json.loads(found[1])["series"][0]
    assert alert in data["x"]
    shown = (min(data["y"]), max(data["y"]))
    assert all(
        math.isclose(a, b, rel_tol=1e-5)
        for a, b in zip(shown, (min(values), max(values)), strict=True)
    )
