"""Made values in another form, after torch has said what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchstone.starting.cuts.forms import Form
from torchstone.starting.obstacles import Misfit
from torchstone.starting.supplies import MadeValues, Supply

_TOKENS = 64
"""Whole numbers where only that is known of them."""
_FEWEST = 2


def refine_values(supplies: Sequence[Supply], misfit: Misfit) -> tuple[MadeValues, ...]:
    """Values that were floats and are used as indices; whole numbers that are too large."""
    made = [item for item in supplies if isinstance(item, MadeValues)]
    new = [
        replace(
            item,
            leaves=tuple(
                leaf if leaf.form is None else replace(leaf, form=_refined(leaf.form, misfit))
                for leaf in item.leaves
            ),
        )
        for item in made
    ]
    return tuple(item for item, old in zip(new, made, strict=True) if item != old)


def _refined(form: Form, misfit: Misfit) -> Form:
    if form.what not in ("tensor", "array"):
        return form
    if misfit.what == "indices" and not form.high:
        return replace(form, dtype="int64", high=_TOKENS)
    if misfit.what == "range" and form.high > _FEWEST:
        return replace(form, high=max(form.high // 4, _FEWEST))
    return form
