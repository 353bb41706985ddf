"""Which place is to blame: the first whose result is bad although its inputs were good."""

from __future__ import annotations

import math

from torchstone.tensors.compare.ledger import Ledger, SiteErrors
from torchstone.tensors.compare.outcome import FirstBad, OperatorError
from torchstone.tensors.compare.places import Place

BAD_UNITS = 16
"""Error that leaves a place, in units of rounding. Kernels of healthy networks make up to 12 of their
own (the backward of layer norm on a CPU)."""
RATIO = 8
"""How many times the error that entered. A layer norm of mean 8 and deviation 1 multiplies by 8."""
HARM_UNITS = 4
"""What reaches outputs, gradients or statistics must be at least this bad: a difference that is damped
later harms nobody."""


def first_bad_place(
    ledger: Ledger, places: list[Place], unit: float, harm: float, layer_names: frozenset[str]
) -> FirstBad | None:
    """The place to blame, or None for a healthy run."""
    broken = min(ledger.broken, key=lambda item: item.order, default=None)
    suspects = [
        number
        for number, site in ledger.sites.items()
        if _is_suspect(site, unit) and (broken is None or site.order <= broken.order)
    ]
    if broken is not None and not any(
        ledger.sites[n].order < _order(ledger, broken.because) for n in suspects
    ):
        site = ledger.sites.get(broken.because) or SiteErrors(broken.order)
        return _found(
            places[broken.because], broken.operator, "nonfinite", site.entering, math.inf, layer_names
        )
    if not suspects or (harm < HARM_UNITS * unit and broken is None):
        return None
    number = min(suspects, key=lambda n: ledger.sites[n].order)
    site = ledger.sites[number]
    worst = max(site.operators.values(), key=lambda item: (item.amplification, item.total))
    return _found(
        places[number], worst.operator, "amplified", site.entering, site.leaving, layer_names
    )


def _order(ledger: Ledger, number: int) -> int:
    site = ledger.sites.get(number)
    return site.order if site else 0


def _is_suspect(site: SiteErrors, unit: float) -> bool:
    return site.leaving > BAD_UNITS * unit and site.leaving > RATIO * max(site.entering, unit)


def _found(
    place: Place, operator: str, kind: str, entering: float, leaving: float, names: frozenset[str]
) -> FirstBad:
    return FirstBad(place, operator, kind, entering, leaving, layer_to_keep(place, names))


def layer_to_keep(place: Place, names: frozenset[str]) -> str:
    """The module that called the operator."""
    return place.module if place.module in names else ""


def absorbed(place: Place, leaving: float, names: frozenset[str]) -> FirstBad:
    """A statistic that the reference changed and the low run left as it was."""
    return FirstBad(place, "copy_", "absorbed", 0.0, leaving, layer_to_keep(place, names))


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
