"""What relations look at: a recorded run, and a way to make its calls again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.conductor.experiments.recording.calls import Call
from torchstone.conductor.experiments.recording.run import Run
from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.recording.training import TrainingRecorder
from torchstone.conductor.probes.rules import Shown


@dataclass(frozen=True, slots=True)
class Subject:
    """A program that was run once."""

    start: Start
    run: Run
    recorder: TrainingRecorder

    def replay(self, call: Call, arguments: Mapping[str, Any], seed: int = 0) -> Replayed:
        """Make a call again; what it raises is part of the answer."""
        before = self.recorder.backwards, self.recorder.optimizer_steps
        try:
            with torch.random.fork_rng():
                value = call.again(arguments, seed)
        except Exception as error:  # whatever the code of the project raises
            return Replayed(None, f"{type(error).__name__}: {str(error)[:200]}")
        trained = (self.recorder.backwards, self.recorder.optimizer_steps) != before
        return Replayed(value, "", trained)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A call that was made again."""

    value: Any
    error: str = ""
    trained: bool = False
    """It made a backward pass or an optimizer step."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What a relation found, and whether it could have found anything."""

    shown: tuple[Shown, ...] = ()
    decided: bool = False
    held: tuple[str, ...] | None = None
    """Rules that were asked, could have been broken, and hold; None: all or none, as `decided` says."""


NOTHING_TO_LOOK_AT = Examined()
