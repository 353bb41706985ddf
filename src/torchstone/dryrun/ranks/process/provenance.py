"""How the value of a fake tensor was made, as one number.

A fake tensor has no value to compare between ranks, but its history can be compared: two ranks that
made a tensor by the same calls from the same values hold the same value. The number of a storage is
a hash over the operator, its arguments and the numbers of its inputs. Real inputs count by their
content, random operators by the state of the generator, results of collectives by their place in
the sequence of their group: those are the same on all members.
"""

from __future__ import annotations

import zlib
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torchstone.core.place import NOWHERE, Place
from torchstone.dryrun.eager.writes import written_tensors
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import is_fake, tensors_in
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes
from torchstone.observe.where import PROGRAM

Number = int
_SAMPLED = 2048
"""Elements of a real tensor that are looked at: two different batches differ in most of them."""
_OVERWRITES = frozenset("copy_ zero_ fill_ normal_ uniform_ random_ bernoulli_ exponential_ "
                        "log_normal_ cauchy_ geometric_".split())  # fmt: skip
"""In-place operators after which nothing of the old value is left."""


class _Facts:
    """What an operator's schema says, found once."""

    __slots__ = ("blank", "name", "overwrites", "random")

    def __init__(self, func: Any) -> None:
        self.name = func._schema.name
        plain = self.name.removeprefix("aten::")
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        self.overwrites = plain in _OVERWRITES
        self.blank = plain.endswith("_like") or plain.startswith("new_")
        """The input gives its shape and nothing of its value."""


class Provenance:
    """Numbers of all storages that a rank has made."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._numbers: dict[StorageWeakRef, Number] = {}
        self._contents: dict[StorageWeakRef, tuple[int, Number]] = {}
        self._facts: dict[Any, _Facts] = {}
        self._seeded = False
        self._draws = 0
        self.drawn_at: dict[StorageWeakRef, Place] = {}
        """The lines that filled storages with random values."""

    # -- the generator

    def follow_seeds(self) -> None:
        """A process that sets no seed has one of its own: no other rank draws the same values."""
        for name, seeded in (("manual_seed", True), ("seed", False)):
            original = getattr(torch.random, name)

            def call(*args: Any, original: Any = original, seeded: bool = seeded) -> Any:
                self._seeded, self._draws = seeded, 0
                return original(*args)

            put(torch.random, name, call)
            put(torch, name, call)

    @property
    def seeded(self) -> bool:
        return self._seeded

    def _draw(self, generator: Any) -> Number:
        self._draws += 1
        with disable_modes(), DisableTorchFunction():
            source = torch.default_generator if generator is None else generator
            state = zlib.crc32(source.get_state().numpy().tobytes())
        own = -1 if self._seeded or generator is not None else self._rank
        return hash((state, self._draws, own))

    # -- numbers of tensors

    def of(self, tensor: torch.Tensor) -> Number:
        """The number of a tensor: of its storage, and of the part of it that it shows."""
        if tensor.layout is not torch.strided:
            return 0
        key = StorageWeakRef(tensor.untyped_storage())
        number = self._numbers.get(key)
        if number is None:
            number = 0 if is_fake(tensor) else self._content(key, tensor)
        return hash((number, tensor.storage_offset(), tuple(tensor.shape)))

    def _content(self, key: StorageWeakRef, tensor: torch.Tensor) -> Number:
        version = 0 if tensor.is_inference() else tensor._version
        known = self._contents.get(key)
        if known is not None and known[0] == version:
            return known[1]
        with disable_modes(), DisableTorchFunction():
            flat = tensor.detach().reshape(-1)
            flat = flat[
                :: max(1, flat.numel() // _SAMPLED)
            ].clone()  # numpy() would pin the storage
            number = zlib.crc32(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else 0
        self._contents[key] = (version, number)
        return number

    def set(self, tensor: torch.Tensor, number: Number) -> None:
        """The whole tensor has been given a value from outside: by a collective, from a file."""
        if tensor.layout is torch.strided:
            self._numbers[StorageWeakRef(tensor.untyped_storage())] = number

    def forget(self, tensor: torch.Tensor) -> None:
        """A real tensor has been given a value that can be read again."""
        if tensor.layout is torch.strided:
            self._numbers.pop(StorageWeakRef(tensor.untyped_storage()), None)

    def adopt(self, real: torch.Tensor, fake: torch.Tensor) -> None:
        """A fake tensor stands in for a real one."""
        self.set(fake, self.of(real))

    def observe(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Number what an operator made or wrote."""
        facts = self._facts.get(func)
        if facts is None:
            facts = self._facts[func] = _Facts(func)
        written = [*written_tensors(func, args, kwargs)]
        made = tensors_in(result)
        if facts.name.startswith("aten::_foreach"):
            # each element has a history of its own: what an expert of one rank holds says nothing
            # about the parameters beside it
            for place, target in enumerate(written or made):
                own = tuple(_element(item, place, len(written or made)) for item in args)
                number = self._number(facts, own, kwargs, target if written else None)
                if written or is_fake(target):
                    self._give(target, number, NOWHERE)
            return
        number = self._number(facts, args, kwargs, written[0] if written else None)
        spot = PROGRAM.here(4) if facts.random else NOWHERE
        for place, target in enumerate(written):
            self._give(target, hash((number, place)), spot)
        for place, tensor in enumerate(made):
            if tensor.layout is torch.strided and is_fake(tensor):
                key = StorageWeakRef(tensor.untyped_storage())
                if key not in self._numbers:  # a view keeps the number of its storage
                    self._numbers[key] = hash((number, place))
                    if spot:
                        self.drawn_at[key] = spot

    def _give(self, target: torch.Tensor, number: Number, spot: Place) -> None:
        if target.layout is not torch.strided:
            return
        key = StorageWeakRef(target.untyped_storage())
        self._numbers[key] = number
        if spot:
            self.drawn_at[key] = spot

    def _number(
        self, facts: _Facts, args: Any, kwargs: dict[str, Any], written: torch.Tensor | None
    ) -> Number:
        parts: list[object] = [facts.name]
        skipped = (
            written if facts.overwrites and written is not None and _is_whole(written) else None
        )
        for item in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(item, torch.Tensor):
                if item is not skipped and not facts.blank:
                    parts.append(self.of(item))
            elif isinstance(item, (list, tuple)):
                parts += [
                    self.of(one) if isinstance(one, torch.Tensor) else repr(one) for one in item
                ]
            elif not isinstance(item, torch.Generator):
                parts.append(repr(item))
        if facts.random:
            parts.append(self._draw(kwargs.get("generator")))
        return hash(tuple(parts))


def _element(item: Any, place: int, count: int) -> Any:
    """What one element of a foreach operator is given."""
    return item[place] if isinstance(item, (list, tuple)) and len(item) == count else item


def _is_whole(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
