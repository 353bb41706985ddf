"""What one rank did, as far as others can be compared with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from torchstone.conductor.probes.harvest.listeners.values import digest_of
from torchstone.conductor.probes.harvest.recording import (
    Backward,
    Clip,
    Collective,
    GatheredGradient,
    Loss,
    OptimizerStep,
    ParameterFacts,
    Recording,
    Save,
)
from torchstone.core.place import Place
from torchstone.observe.compat.trees import tree_leaves

NOWHERE = Place("", 0)
_MASKS = 4
_MOST = 400
"""Events of a kind that are handed to the comparison."""


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that a rank wrote, and the line."""

    path: str
    place: Place


@dataclass(frozen=True, slots=True)
class MeanLoss:
    """A loss that is a mean, and over how many targets."""

    place: Place
    counted: int


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What one rank did."""

    saves: tuple[SavedFile, ...] = ()
    batches: tuple[tuple[Place, str], ...] = ()
    digests: tuple[str, ...] = ()
    step: Place = NOWHERE
    clip: Place = NOWHERE
    model: Place = NOWHERE
    """Where the first model was made."""
    backward: Place = NOWHERE
    micro_batches: int = 1
    """Backward passes of the first step."""
    data_parallel: bool = False
    parameters: tuple[ParameterFacts, ...] = ()
    collectives: tuple[Collective, ...] = ()
    gathered: tuple[GatheredGradient, ...] = ()
    losses: tuple[MeanLoss, ...] = ()
    tokens: str = ""
    """Digest of what the model was first called with."""
    masks: tuple[tuple[Place, str], ...] = ()
    """Digests of the masks that its modules were called with first."""


def facts_of(run: Recording) -> RankFacts:
    step, clip = next(run.of(OptimizerStep), None), next(run.of(Clip), None)
    backward = next(run.of(Backward), None)
    top = run.top_modules()
    return RankFacts(
        tuple(SavedFile(save.path, save.place) for save in run.of(Save)), tuple(run.batches[:4]),
        tuple(run.digests), step.place if step else NOWHERE, clip.place if clip else NOWHERE,
        run.made_at.get(id(top[0]), NOWHERE) if top else NOWHERE,
        backward.place if backward else NOWHERE, step.backwards if step else 1, run.data_parallel, tuple(run.parameters),
        tuple(run.of(Collective))[:_MOST], tuple(run.of(GatheredGradient))[:_MOST],
        tuple(MeanLoss(item.place, item.counted) for item in run.of(Loss) if item.counted)[:_MOST],
        next((digest_of((call.args, call.kwargs)) for call in run.calls if call.top), ""),
        tuple(_masks(run))[:_MASKS],
    )  # fmt: skip


def _masks(run: Recording) -> Iterator[tuple[Place, str]]:
    for call in run.calls:
        for item in tree_leaves((call.args, call.kwargs)):
            if isinstance(item, torch.Tensor) and item.dtype == torch.bool and item.dim() > 1:
                if min(item.shape[-2:]) > 1:
                    yield call.place, digest_of(item)
