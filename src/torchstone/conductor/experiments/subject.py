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
from torchstone.core.place import NOWHERE, Place


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
        except (Exception, SystemExit) as error:  # whatever the code of the project raises
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


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What variations need to know of the program as it is, to run it again with something changed."""

    losses: tuple[float, ...] = ()
    """Of the first and the last backward passes."""
    backwards: int = 0
    loss_at: Place = NOWHERE
    accumulated: int = 0
    """Backward passes of one line before the first update."""
    accumulated_at: Place = NOWHERE
    autocast: bool = False
    """It entered a region of autocast that is switched on."""
