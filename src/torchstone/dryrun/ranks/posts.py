"""One communication of one rank, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchstone.core.place import Place
from torchstone.core.text import Text

SEND, RECV, NEW_GROUP = "send", "recv", "new_group"
ANY = -1


@dataclass(frozen=True, slots=True)
class Post:
    """What a rank has started: a collective, a send, a receive, or the making of a group."""

    rank: int
    number: int
    """Counted on the rank."""
    op: str
    group: str = ""
    members: tuple[int, ...] = ()
    dtype: str = ""
    shape: tuple[int, ...] = ()
    """Of what must be equal on all ranks: the input, or the output of a scatter."""
    root: int = -1
    reduce: str = ""
    in_splits: tuple[int, ...] = ()
    out_splits: tuple[int, ...] = ()
    peer: int = -1
    tag: int = 0
    bytes: int = 0
    stack: tuple[Place, ...] = ()
    """The lines of the user's own code, innermost first."""
    inside: str = ""
    """What made the call when it was no line of the user's: DDP, FSDP, DTensor."""
    phase: str = ""
    step: int = 0
    """Optimizer steps that the rank had done."""

    @property
    def place(self) -> Place:
        return self.stack[0] if self.stack else Place()

    @property
    def is_p2p(self) -> bool:
        return self.op in (SEND, RECV)

    def signature(self) -> tuple[object, ...]:
        """What must be the same on every rank of the group."""
        return (self.op, self.dtype, self.shape, self.root, self.reduce)

    def text(self, peers: tuple[int, ...] = ()) -> str:
        """`all_reduce(float32, (4, 4), sum)`; with the peers of several ranks that do the same."""
        parts = [self.dtype, str(self.shape) if self.dtype else "", self.reduce]
        if self.root >= 0:
            parts.append(f"root {self.root}")
        if self.is_p2p:
            arrow = "to" if self.op == SEND else "from"
            others = list(dict.fromkeys(peers)) or [self.peer]
            names = ", ".join("any" if peer == ANY else str(peer) for peer in others)
            parts.append(f"{arrow} rank {names}")
            if self.tag:
                parts.append(f"tag {self.tag}")
        if self.op == NEW_GROUP:
            parts.append(f"ranks {list(self.members)}")
        return f"{self.op}({', '.join(part for part in parts if part)})"

    def on(self, rank: int) -> Post:
        return replace(self, rank=rank)


def wrong_group_text(group: Sequence[int], holders: Sequence[int]) -> Text:
    """Which ranks share gradients, and which share parameters."""
    return Text(
        f"gradients are reduced over ranks {list(group)}, and the parameters are equal on ranks {list(holders)}",
        f"梯度在 rank {list(group)} 上归约，而参数在 rank {list(holders)} 上相同",
    )
