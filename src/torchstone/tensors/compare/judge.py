"""Which place is to blame: the first whose result is bad although its inputs were good."""

from __future__ import annotations

import math

from torchstone.core.place import Place
from torchstone.tensors.compare.results.outcome import FirstBad, OperatorError
from torchstone.tensors.compare.shadow.ledger import Ledger, SiteErrors

BAD_UNITS = {"forward": 8, "backward": 64}
"""Error that leaves a place, in units of rounding, before it is suspected. Low, because a suspect is only
blamed after a second run; gradients of healthy networks cancel more (convolutions before a batch norm
multiply errors by 25)."""
BAD_SHARE = {"forward": 0.01, "backward": 0.25}
"""And as a share: below this an error harms no training, however many units of rounding it has."""
RATIO = 8
"""How many times the error that entered. A layer norm of mean 8 and deviation 1 multiplies by 8."""
HARM_UNITS = 4
"""What reaches outputs, gradients or statistics must be at least this bad: a difference that is damped
later harms nobody."""
CURED = 0.5
"""A place is to blame if with its results made exact at most this share of the harm is left."""


def suspects_in_order(ledger: Ledger, places: list[Place], unit: float) -> list[FirstBad]:
    """Every place that could be the first bad one, the earliest first."""
    broken = min(ledger.broken, key=lambda item: item.order, default=None)
    last = broken.order if broken else ledger.count + 1
    found = [
        (site.order, _amplified(places[number], site))
        for number, site in ledger.sites.items()
        if site.order <= last and _is_suspect(site, places[number].phase, unit)
    ]
    if broken is not None:
        place = places[broken.because]
        found.append(
            (last, FirstBad(place, broken.operator, "nonfinite", 0.0, math.inf, place.module))
        )
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]


def _amplified(place: Place, site: SiteErrors) -> FirstBad:
    worst = max(site.operators.values(), key=lambda item: (item.amplification, item.total))
    return FirstBad(place, worst.operator, "amplified", site.entering, site.leaving, place.module)


def _is_suspect(site: SiteErrors, phase: str, unit: float) -> bool:
    bad = max(BAD_UNITS[phase] * unit, BAD_SHARE[phase])
    return site.leaving > bad and site.leaving > RATIO * max(site.entering, unit)


def absorbed(place: Place, leaving: float) -> FirstBad:
    """A statistic that the reference changed and the low run left as it was."""
    return FirstBad(place, "copy_", "absorbed", 0.0, leaving, place.module)


def operator_errors(ledger: Ledger, places: list[Place], unit: float) -> tuple[OperatorError, ...]:
    """All operators in the order in which they first ran."""
    found = [
        OperatorError(
            places[number], item.operator, item.order, item.calls, item.inherited,
            item.local / unit, item.amplification, item.total, item.flips,
        )
        for number, site in ledger.sites.items()
        for item in site.operators.values()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda item: item.order))
