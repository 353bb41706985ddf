"""What a run could not know and took for granted, and in which module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from torchstone.core.text import Message
from torchstone.cost.records.books import Books, Scope
from torchstone.cost.records.ledger import FORWARD, Assumption
from torchstone.runtime.modules import Paths
from torchstone.runtime.on_meta.content import ASSUMPTIONS

_FUSED = {
    "aten._scaled_dot_product_flash_attention": "flash",
    "aten._scaled_dot_product_efficient_attention": "memory-efficient",
}


class Assumed:
    """The assumptions of one run, each with how often it was made."""

    def __init__(self, paths: Paths[Scope]) -> None:
        self._paths = paths
        self._times: Counter[tuple[str, str, tuple[tuple[str, str], ...]]] = Counter()

    def tell(self, kind: str, args: Mapping[str, str]) -> None:
        """One was made in the module that runs now."""
        self._times[kind, self._paths.current.module, tuple(args.items())] += 1

    def autocast(self, dtype: str) -> None:
        self.tell("autocast", {"dtype": dtype})

    def all(self, books: Books, stands: Mapping[str, str]) -> tuple[Assumption, ...]:
        """All of them, with those that the books and the copied layers (`stands`) show."""
        times = self._times.copy()
        for path, count in Counter(stands.values()).items():
            times["copied-layers", path, (("count", str(count)),)] = 1
        fused = [entry for entry in books.distinct() if entry.name in _FUSED]
        for scope in books.scopes.values():
            if scope.phase != FORWARD:
                continue
            for entry in fused:
                if calls := scope.calls.get(entry):
                    kernel = (("kernel", _FUSED[entry.name]),)
                    times["fused-attention", scope.module, kernel] += calls
        return tuple(
            Assumption(kind, Message(kind, ASSUMPTIONS[kind], dict(args)), where, count)
            for (kind, where, args), count in times.items()
        )
