"""What the process that runs the program is told."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.starting.interpreters import OURS, Interpreter
from torchstone.starting.supplies import Supply

WALL_FACTOR = 2
"""Seconds of the clock for one of the processor: as much as a machine with another job on it takes."""


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """How one script is to be run."""

    script: str = ""
    arguments: tuple[str, ...] = ()
    target: str = ""
    """`module:Model` instead of a script."""
    inputs: tuple[str, ...] = ()
    train: bool = False
    symbolic: str = ""
    scratch: str = ""
    """The folder that takes all that the program writes."""
    allow_write: bool = False
    network: str = "OPEN"
    """Name of the member of `Network` that keeps the program from the network."""
    cuda: bool = True
    devices: int = 1
    device_name: str = "H100"
    device_memory_bytes: int = 80 << 30
    max_steps: int = 4
    max_backwards: int = 64
    max_seconds: float = 60.0
    max_paths: int = 4
    try_fixes: bool = True
    data: str = ""
    """What one sample of every dataset looks like, instead of what its files hold."""
    compile: bool = False
    """Compile what was called when the program has ended."""
    observe_shapes: bool = False
    """Keep the shapes of the user's functions, to write annotations from."""
    batch_size: int = 0
    """Batches of this size instead of the loader's own; 0 leaves it."""
    world_size: int = 1
    local_world_size: int = 0
    rank: int = 0
    play_ranks: bool = False
    interpreter: Interpreter = OURS
    confined: bool = False
    """The kernel keeps it from writing elsewhere."""
    as_it_is: bool = False
    """Nothing is supplied."""
    supplies: tuple[Supply, ...] = ()
    """What is put in the place of what is missing."""
    real_parameters: bool = False
    """FSDP1 refuses fake parameters: small real ones are used instead."""

    def limit_seconds(self) -> float:
        """Wall seconds for one run of the program: ranks that are played together share the processors,
        and each takes up to a second of them for its start and first step."""
        return self.max_seconds + (self.world_size if self.play_ranks else 0)

    def local_ranks(self) -> int:
        """Ranks on one node: 8 by default, as most nodes have."""
        return self.local_world_size or min(self.world_size, 8)
