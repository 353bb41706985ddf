"""The same program on several ranks and on one, with the same data: the gradients must agree.

Nothing of the parallel scheme needs to be known. The ranks' own weights, batches and random draws are
written down and given to one process, joined; what differs between ranks is joined along an axis, what is
equal is used once.
"""

from collections.abc import Iterable

from torchstone.core.finding import Finding

TOOL = "experiments"
FAMILY = "EX2"
HELD = "held:ranks_against_one"
"""Measure: 1 where the gradients agree, 0 where they do not; missing where nothing was decided."""
ALONE = ("one_process_norm", "one_process_projection")
"""Measures of the first gradient of the program as it runs on one process."""


def is_of(findings: Iterable[Finding]) -> bool:
    """Whether this comparison showed one of these findings."""
    return any(item.rule.startswith(FAMILY) for item in findings)
