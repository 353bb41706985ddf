"""Plays the program on one rank and writes its tape; or on one process, with joined tapes put in."""

from __future__ import annotations

import gc
import inspect
import math
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.utils.data import DataLoader

from torchstone.conductor.experiments.against_one.tape import (
    STEPS,
    CannotJoinError,
    Return,
    Tape,
    join,
    join_batches,
    join_weights,
    load_tape,
    tape_name,
)
from torchstone.conductor.experiments.recording.noise import (
    switch_autocast_off,
    switch_dropout_off,
)
from torchstone.conductor.experiments.recording.run import Run
from torchstone.conductor.experiments.recording.session import Start, prepare, run_script
from torchstone.conductor.experiments.recording.training import EnoughError
from torchstone.conductor.probes.harvest.group import FileGroup
from torchstone.conductor.probes.harvest.precision import (
    RunMode,
    emulate_autocast,
    make_scalers_for_host,
)
from torchstone.observe.compat.layers import BatchNormBase
from torchstone.observe.training import TRAINING, BackwardBegins, OptimizerMade, StepBegins
from torchstone.observe.where import Where

Autocast = Literal["off", "as written", "as on a GPU"]
"""What regions of autocast do; on a GPU they cast by its lists, whatever device is here."""
_DRAWS = (
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
    "rand_like",
    "randn_like",
    "randint_like",
)
_MOST_RETURNS = 400
_MOST_ELEMENTS = 1 << 20
_GATHERING = ("all_gather", "reduce_scatter", "all_to_all")


@dataclass(slots=True)
class Player:
    """One process of the comparison."""

    start: Start
    rank: int = 0
    world: int = 1
    exchange: str = ""
    given: tuple[Tape, ...] = ()
    """Tapes of the ranks whose data this process uses instead of its own."""
    weights: tuple[torch.Tensor, ...] = ()
    """Of rank 0, where every rank is to begin with them."""
    steps: int = STEPS
    dropout: bool = False
    """Random numbers that differ from rank to rank without being wrong."""
    autocast: Autocast = "off"
    tape: Tape = field(default_factory=Tape)
    _parameters: list[torch.Tensor] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _open: bool = True
    _reads_data: bool = False

    def play(self) -> Tape:
        run, places = Run(self.start.root, self.start.script), Where(self.start.root)
        lookups = prepare(self.start, self.rank, self.world, self.exchange)
        if not self.dropout:
            switch_dropout_off()
        if self.autocast == "off":
            switch_autocast_off()
        TRAINING.subscribe(self._before_backward, BackwardBegins)
        TRAINING.subscribe(self._optimizer_made, OptimizerMade)
        TRAINING.subscribe(lambda event: self._before_step(event, places), StepBegins)
        self._watch_loaders()
        self._watch_draws(places)
        FileGroup.heard = staticmethod(self._heard)
        with RunMode() as mode:
            if self.autocast == "as on a GPU":
                emulate_autocast(mode, lambda _: None)
                make_scalers_for_host(lambda _: None)
            sys.setprofile(self._returned)
            try:
                run_script(self.start, run, places, lookups)
            finally:
                sys.setprofile(None)
                FileGroup.tell_end()
        self.tape.ended = run.ended
        self.tape.last_lines = run.last_lines
        return self.tape

    def _optimizer_made(self, event: OptimizerMade) -> None:
        own = [item for group in event.optimizer.param_groups for item in group["params"]]
        if self.given:
            self._put_weights(own, len(self._parameters))
        for item, first in zip(own, self.weights[len(self._parameters) :], strict=False):
            item.data.copy_(first)
        self._parameters += own

    def _before_backward(self, event: BackwardBegins) -> None:
        if isinstance(event.roots, torch.Tensor) and event.roots.numel() == 1:
            self.tape.losses.append(float(event.roots.detach()))

    def _before_step(self, event: StepBegins, places: Where) -> None:
        tape = self.tape
        groups = event.optimizer.param_groups
        tape.rates.append([float(group.get("lr", math.nan)) for group in groups])
        if not tape.gradients:
            tape.names = name_parameters(self._parameters)
            tape.weights = [item.detach().clone() for item in self._parameters]
            here = places.own(2)
            tape.step_at = (here.path, here.line)
        tape.gradients.append(
            [
                None
                if item.grad is None or item.grad.is_sparse
                else item.grad.detach().float().clone()
                for item in self._parameters
            ]
        )
        self._open = False  # what is returned after the first step is not compared
        if len(tape.gradients) >= self.steps:
            raise EnoughError

    def _put_weights(self, own: list[torch.Tensor], offset: int) -> None:
        for place, item in enumerate(own, offset):
            parts = [tape.weights[place] for tape in self.given if place < len(tape.weights)]
            if len(parts) != len(self.given):
                raise CannotJoinError(
                    "another number of parameters on the ranks than in one process"
                )
            with torch.no_grad():
                item.copy_(join_weights(parts, item.shape))

    def _watch_loaders(self) -> None:
        iterate = DataLoader.__iter__
        queue = [tape.batches for tape in self.given]
        place = [0]

        def recorded(loader: Any) -> Iterator[Any]:
            for batch in self._read(iterate(loader)):
                if not self.given:
                    if len(self.tape.batches) < 64:
                        self.tape.batches.append(batch)
                    yield batch
                    continue
                parts = [rows[place[0]] for rows in queue if place[0] < len(rows)]
                if len(parts) != len(queue):
                    raise EnoughError
                place[0] += 1
                yield join_batches(parts)

        DataLoader.__iter__ = recorded  # type: ignore[method-assign, assignment]

    def _read(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches; random numbers that a data set draws meanwhile are in them already."""
        while True:
            self._reads_data = True
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self._reads_data = False
            yield batch

    def _watch_draws(self, places: Where) -> None:
        place = [0]

        def recorded(draw: Any) -> Any:
            def drawn(*args: Any, **kwargs: Any) -> Any:
                value = draw(*args, **kwargs)
                # weights are drawn before the optimizer is made, and are put in as a whole
                if (
                    self._reads_data
                    or not self._parameters
                    or not places.is_own(sys._getframe(1).f_code.co_filename)
                ):
                    return value
                if not self.given:
                    if len(self.tape.draws) < 256:
                        self.tape.draws.append(value.detach().clone())
                    return value
                parts = [tape.draws[place[0]] for tape in self.given if place[0] < len(tape.draws)]
                place[0] += 1
                return join(parts) if len(parts) == len(self.given) else value

            return drawn

        for name in _DRAWS:
            setattr(torch, name, recorded(getattr(torch, name)))

    def _heard(self, kind: str, _: list[torch.Tensor], __: int) -> None:
        if kind in _GATHERING:
            self.tape.gathers = True

    def _returned(self, frame: types.FrameType, event: str, value: Any) -> None:
        if event != "return" or not self._open or not self._parameters or self._reads_data:
            return  # batches are put in as a whole: what made them is not compared
        if isinstance(frame.f_locals.get("self"), BatchNormBase):
            self._note_statistics(frame.f_locals["self"])
        code = frame.f_code
        inside = code.co_filename.startswith(f"{self.start.root}/")
        if not inside or code.co_name.startswith("<") or code.co_name == "__getitem__":
            return
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            return
        items = value if isinstance(value, tuple) else (value,)
        found = [item for item in items if isinstance(item, torch.Tensor)]
        for item in found if len(self.tape.returns) < _MOST_RETURNS else ():
            if item.is_floating_point() and item.numel() <= _MOST_ELEMENTS:
                name = code.co_qualname.replace("<locals>.", "")
                count = self._counts[name] = self._counts.get(name, 0) + 1
                path = code.co_filename.removeprefix(f"{self.start.root}/")
                kept = item.detach().float().clone()
                self.tape.returns.append(Return(f"{name}#{count}", path, frame.f_lineno, kept))

    def _note_statistics(self, module: nn.Module) -> None:
        if module.training and not isinstance(module, nn.SyncBatchNorm):
            self.tape.own_statistics = True


def write_tape(start: Start, rank: int, world: int, exchange: str, folder: Path, even: bool) -> str:
    """The work of one rank; `even`: it begins with the weights that rank 0 had the last time."""
    weights = tuple(load_tape(folder / "0.pt").weights) if even else ()
    tape = Player(start, rank, world, exchange, weights=weights).play()
    tape.save(folder / tape_name(rank, even))
    return "ok"


def name_parameters(parameters: list[torch.Tensor]) -> list[str]:
    """As their outermost module calls them, with its class before it; by number where none has them."""
    modules = [item for item in gc.get_objects() if isinstance(item, nn.Module)]
    inner = {id(child) for item in modules for child in item._modules.values()}
    names: dict[int, str] = {}
    for item in modules:
        if id(item) not in inner:
            for name, parameter in item.named_parameters():
                names.setdefault(id(parameter), f"{type(item).__name__}.{name}")
    return [names.get(id(item), str(place)) for place, item in enumerate(parameters)]
