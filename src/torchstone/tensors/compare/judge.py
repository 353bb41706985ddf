"""Which line is to blame: the first whose result is bad although its inputs were good."""

from __future__ import annotations

import math

from torchstone.core.place import Place
from torchstone.tensors.compare.limits import GROWTH, Limits
from torchstone.tensors.compare.results.outcome import FirstBad, Growth, OperatorError
from torchstone.tensors.compare.shadow.ledger import Broken, Ledger, SiteErrors


def suspects_in_order(ledger: Ledger, places: list[Place], limits: Limits) -> list[FirstBad]:
    """Every line that could be the first bad one, the earliest first; one entry for all its rounds and modules."""
    broken = min(ledger.broken, key=lambda item: item.order, default=None)
    last = broken.order if broken else ledger.count + 1
    found = [
        (site.order, _amplified(places[number], site))
        for number, site in ledger.sites.items()
        if places[number] and site.order <= last and site.steepest.growth(limits.unit) > GROWTH
    ]
    if broken is not None:
        found.append((last, _nonfinite(ledger, places, broken)))
    lines: dict[tuple[str, int, str, str], FirstBad] = {}
    for _, item in sorted(found, key=lambda pair: pair[0]):
        place = item.place
        lines.setdefault((place.path, place.line, place.phase, item.kind), item)
    return list(lines.values())


def _nonfinite(ledger: Ledger, places: list[Place], broken: Broken) -> FirstBad:
    place, operator = places[broken.because], broken.operator
    made = ledger.site(broken.because).operators
    if broken.because != broken.site and made:  # it divides by a zero that another line made
        operator = max(made.values(), key=lambda item: item.total).operator
    return FirstBad(place, operator, "nonfinite", 0.0, math.inf, place.module)


def _amplified(place: Place, site: SiteErrors) -> FirstBad:
    worst = max(site.operators.values(), key=lambda item: (item.amplification, item.total))
    passage = site.steepest
    return FirstBad(
        place, worst.operator, "amplified", passage.entering, passage.leaving, place.module
    )


def absorbed(place: Place, leaving: float) -> FirstBad:
    """A statistic that the reference changed and the low run left as it was."""
    return FirstBad(place, "copy_", "absorbed", 0.0, leaving, place.module)


def growth_of_error(ledger: Ledger, places: list[Place]) -> tuple[Growth, ...]:
    """The lines of the forward pass, in their order, after which the error is larger than ever before."""
    return tuple(
        Growth(places[number], passage.entering, passage.leaving)
        for number, passage in ledger.growth
        if places[number]
    )


def flushed(place: Place, operator: str) -> FirstBad:
    """The line at which the loss became zero."""
    return FirstBad(place, operator, "flushed", 0.0, 1.0, place.module)


def operator_errors(ledger: Ledger, places: list[Place], unit: float) -> tuple[OperatorError, ...]:
    """All operators in the order in which they first ran."""
    found = [
        OperatorError(
            place=places[number],
            operator=item.operator,
            order=item.order,
            calls=item.calls,
            inherited=item.inherited,
            local_units=item.local / unit,
            amplification=item.amplification,
            total=item.total,
            flips=item.flips,
        )
        for number, site in ledger.sites.items()
        for item in site.operators.values()
    ]
    return tuple(sorted(found, key=lambda item: item.order))
