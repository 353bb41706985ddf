"""A counted pass as the tables that a static report is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchstone.core.text import Message
from torchstone.cost.ocr.analysis.notes import note
from torchstone.cost.records.ledger import Cost, ancestors


def full_analysis(cost: Cost) -> dict[str, Any]:
    """A counted pass under the names that fvcore's analyses have; FLOPs are 2 x multiply-adds.

    `by_module`, `by_module_and_operator`, `acts_by_module` and `params` are cumulative: a module
    with all that is inside it.
    """
    whole = cost.by_module()
    operators: dict[str, dict[str, float]] = {path: {} for path in whole}
    for key, tally in cost.entries.items():
        for path in ancestors(key.module):
            table = operators.setdefault(path, {})
            table[key.operator] = table.get(key.operator, 0.0) + tally.flops
    total = cost.total()
    return {
        "total_params": cost.parameters(),
        "total_flops": float(total.flops),
        "total_activations": float(total.elements),
        "by_module": {path: float(tally.flops) for path, tally in whole.items()},
        "by_module_and_operator": operators,
        "by_operator": {name: float(t.flops) for name, t in cost.by_operator().items()},
        "acts_by_module": {path: float(tally.elements) for path, tally in whole.items()},
        "params": {path: cost.parameters(path) for path in cost.modules},
        "vector_flops": float(total.vector_flops),
        "bytes": total.bytes,
        "peak_memory_bytes": cost.memory.peak,
        "failure": cost.failure,
        "notes": remarks(cost, "full model"),
    }


def operators_of(costs: Iterable[Cost]) -> dict[str, float]:
    """FLOPs by operator over several passes, largest first; those without FLOPs are left out."""
    found: dict[str, float] = {}
    for cost in costs:
        for name, tally in cost.by_operator().items():
            found[name] = found.get(name, 0.0) + tally.flops
    return largest_first(found)


def largest_first(operators: dict[str, float]) -> dict[str, float]:
    """Sorted by FLOPs; operators without any are left out."""
    kept = [(name, value) for name, value in operators.items() if value]
    return dict(sorted(kept, key=lambda item: (-item[1], item[0])))


def remarks(cost: Cost, tier: str) -> list[Message]:
    """What a reader must know of a pass: where it stopped, what it assumed, what it missed."""
    found = []
    if cost.failure is not None:
        found.append(
            note(
                "failed",
                tier=tier,
                module=cost.failure.module or "the model",
                operator=cost.failure.operator or "-",
                error=cost.failure.error,
            )
        )
    found += [item.text for item in cost.assumptions]
    if cost.uncounted:
        found.append(note("uncounted", operators=", ".join(sorted(cost.uncounted))))
    return found


def once(notes: Sequence[Message], lang: str) -> list[str]:
    """The sentences, each a single time, in order."""
    return list(dict.fromkeys(item.say(lang) for item in notes))
