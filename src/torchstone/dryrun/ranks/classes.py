"""Which ranks of a large world are run: the boundaries of nodes and of the world, and some others."""

from __future__ import annotations

import random

ALL = 64
"""Worlds up to this size are run whole: 64 ranks take seconds, 1,024 would take minutes."""
OTHERS = 6
"""Ranks drawn at random beside the boundaries: they show that the classes are what they seem."""


def ranks_to_play(world_size: int, local_world_size: int) -> tuple[int, ...]:
    """All ranks, or the first and last of the world and of nodes, both of a kind, and some others."""
    if world_size <= ALL:
        return tuple(range(world_size))
    last, local = world_size - 1, local_world_size
    middle = world_size // 2
    chosen = {
        0,
        1,
        local - 1,
        local,
        local + 1,
        2 * local,
        middle - 1,
        middle,
        last - local,
        last - 1,
        last,
    }
    drawn = random.Random(world_size)  # the same ranks every time
    while len(chosen) < 11 + OTHERS:
        chosen.add(drawn.randrange(world_size))
    return tuple(sorted(rank for rank in chosen if 0 <= rank < world_size))
