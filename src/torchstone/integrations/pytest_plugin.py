"""For pytest: limits on what a test may cost, and a watch that fails a test on a severe alert.

    @pytest.mark.torchstone(max_flops="2 GFLOP", max_peak_memory="1 GiB")
    def test_forward(model): model(torch.zeros(8, 3, 224, 224))

    def test_training(watch): ...; w = watch(model, optimizer); w.step(loss)

Nothing is loaded before a test asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from torchstone.core.errors import UsageError
from torchstone.core.quantity import human
from torchstone.core.text import Text

if TYPE_CHECKING:
    from torchstone.watch.monitor import Watch

_LIMITS = {
    "max_flops": ("flops", "FLOP"),
    "max_vector_flops": ("vector_flops", "FLOP"),
    "max_bytes": ("bytes", "B"),
    "max_peak_memory": ("peak_memory_bytes", "B"),
    "max_activations": ("activations", "B"),
    "max_params": ("params", ""),
}
"""Arguments of the marker, the figure that each limits, and its unit."""
_QUANTITY = re.compile(
    r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([kKMGTPE]?)(i?)\s*(FLOPs?|FLOP|MAC|B|)\s*"
)
_STEPS = " kMGTPE"


def pytest_configure(config: pytest.Config) -> None:
    names = ", ".join(_LIMITS)
    config.addinivalue_line(
        "markers", f"torchstone({names}): what the models that a test calls may cost at most"
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Count what a marked test does, and fail it when a limit is passed."""
    limits = _limits_of(pyfuncitem)
    if not limits:
        result = yield
        return result
    from torch import nn

    from torchstone.cost.real_step import count_step

    given = [value for value in pyfuncitem.funcargs.values() if isinstance(value, nn.Module)]
    with count_step(given[0] if given else nn.Module()) as step:
        result = yield
    _compare(limits, step.report.total)
    return result


def _limits_of(item: pytest.Function) -> dict[str, float]:
    """The limits of all markers on a test; the nearest wins."""
    found: dict[str, float] = {}
    for marker in item.iter_markers("torchstone"):
        for name, value in marker.kwargs.items():
            if name not in _LIMITS:
                raise UsageError(
                    f"pytest.mark.torchstone on {item.name}", repr(name),
                    Text(f"one of {', '.join(_LIMITS)}", f"{', '.join(_LIMITS)} 之一"),
                    Text("correct the name", "请更正名称"),
                )  # fmt: skip
            found.setdefault(name, quantity(value, f"pytest.mark.torchstone({name}=…)"))
    return found


def quantity(value: object, where: str) -> float:
    """`2e9`, `"2 GFLOP"`, `"1.5 GiB"` or `"25M"` as a number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise UsageError(
            where, repr(value),
            Text("a number, or one with a unit such as 2 GFLOP or 1 GiB", "数字，或带单位的数字，如 2 GFLOP、1 GiB"),
            Text('write it as "2 GFLOP", "1 GiB" or 2e9', '请写作 "2 GFLOP"、"1 GiB" 或 2e9'),
        )  # fmt: skip
    base = 1024.0 if match[3] else 1000.0
    power = _STEPS.index(match[2].replace("K", "k")) if match[2] else 0
    return float(match[1]) * base**power


def _compare(limits: Mapping[str, float], total: Mapping[str, int]) -> None:
    passed = []
    for name, most in limits.items():
        key, unit = _LIMITS[name]
        if total[key] > most:
            passed.append(f"{name}: {human(total[key], unit)} counted, {human(most, unit)} allowed")
    if passed:
        pytest.fail("torchstone: " + "; ".join(passed), pytrace=False)


@pytest.fixture
def watch() -> Iterator[Callable[..., Watch]]:
    """`watch(model, optimizer, …)` opens a Watch; a HIGH episode fails the test at its end."""
    from torchstone.core.finding import Severity
    from torchstone.watch.monitor import Watch

    opened: list[Watch] = []

    def make(*parts: Any, **options: Any) -> Watch:
        made = Watch(*parts, **{"folder": None, **options})
        opened.append(made.__enter__())
        return made

    yield make
    severe = []
    for one in opened:
        severe += [item.first.line() for item in one.episodes if item.severity is Severity.HIGH]
        one.close()
    if severe:
        pytest.fail("torchstone watch: " + "; ".join(severe), pytrace=False)
