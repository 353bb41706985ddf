"""What a run showed about open values, put into what is supplied for the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchstone.starting.cuts.forms import Leaf
from torchstone.starting.obstacles import Decided, OpenValues
from torchstone.starting.supplies import MadeValues, Supply


def decide(obstacle: OpenValues, given: Sequence[Supply]) -> tuple[Supply, ...]:
    """The supplies that know more now; none where nothing is new."""
    found = {(item.path, item.scope): item for item in given if isinstance(item, MadeValues)}
    before = dict(found)
    for item in obstacle.decided:
        supply = found.get((item.path, item.scope))
        if supply is not None:
            found[item.path, item.scope] = replace(supply, leaves=_leaves(supply.leaves, item))
    return tuple(item for key, item in found.items() if item != before[key])


def _leaves(leaves: tuple[Leaf, ...], item: Decided) -> tuple[Leaf, ...]:
    """With the form of one; or with its parts, beside those that it has already."""
    if item.form is not None:
        known = any(leaf.place == item.place for leaf in leaves)
        new = () if known else (Leaf(item.place, item.name, item.form),)
        return (
            tuple(
                replace(leaf, form=item.form) if leaf.place == item.place else leaf
                for leaf in leaves
            )
            + new
        )
    parts = [(*item.place, step) for step in item.parts]
    kept = tuple(leaf for leaf in leaves if leaf.place != item.place)
    held = {leaf.place for leaf in kept}
    return kept + tuple(
        Leaf(place, place[-1][1:] if place[-1][0] in "{." else item.name)
        for place in parts
        if place not in held
    )
