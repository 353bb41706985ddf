"""Which data an object is: a serial number and a weak reference, never its address alone.

Every value (an array as it was made or as it was after a write) has a number. Arrays, tensors
and images are known by a weak reference; numbers and bytes have none and are held, a bounded
number of them. Containers are looked through.
"""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple
from weakref import ref

IGNORED, ARRAY, TENSOR, OBJECT, SCALAR, CONTAINER, RECORD, HOLDER = range(8)
WEAK = (ARRAY, TENSOR, OBJECT)

_WEAK_TYPES = {
    ("numpy", "ndarray"): ARRAY,
    ("torch", "Tensor"): TENSOR,
    ("torch._tensor", "Tensor"): TENSOR,
    ("PIL.Image", "Image"): OBJECT,
    ("cv2", "UMat"): OBJECT,
    ("pandas", "DataFrame"): OBJECT,
    ("pandas", "Series"): OBJECT,
    ("pandas.core.frame", "DataFrame"): OBJECT,
    ("pandas.core.series", "Series"): OBJECT,
    ("scipy.sparse._base", "_spbase"): OBJECT,
}
_HOLDING = frozenset(
    "PIL sklearn skimage scipy kornia albumentations torchvision torchaudio librosa".split()
)
"""Libraries whose objects keep data: a method of such an object uses what it keeps."""
_SCALARS = (float, complex, bytes)
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
CONSTANTS = frozenset((int, float, str, bool, type(None), complex))
_SMALLEST_INT = 257  # the interpreter shares smaller ones: their identity says nothing
_HELD = 65_536  # numbers that are held so that their identity lasts
_HELD_BYTES = 64  # of these at most, they may be large
_MOST_ITEMS = 100_000  # of one container
_PROBE = 16  # a list whose first items hold no data is not looked through further


class ValueFacts(NamedTuple):
    """What a value is. While a program runs the same fields are kept in plain tuples, which the
    garbage collector need not look at."""

    name: str
    nbytes: int
    shape: Sequence[int] = ()
    dtype: Any = ""
    """As the library has it; its text is made when the graph is."""
    kind: str = ""
    """Name of its class."""


class Values:
    """All values of a run."""

    def __init__(self, first: int = 1) -> None:
        self.kinds: dict[type, int] = {int: IGNORED, str: IGNORED, bool: IGNORED}
        self.known: dict[int, tuple[Any, int]] = {}
        """id → weak reference and value number; checked by the reference each time."""
        self.held: dict[int, tuple[Any, int]] = {}
        self.next_number = itertools.count(first).__next__
        self.facts: dict[int, tuple[Any, ...]] = {}
        self.heads: dict[int, list[tuple[int, int, int]]] = {}
        """Memory → (first byte, end, value) of writes that no later write includes."""
        self.aliases: dict[int, list[tuple[str, int]]] = {}
        """Value → (name, value) of calls that returned the same object, such as asarray."""
        self.links: dict[int, tuple[int, ...]] = {}
        """Value that arrived from another process → the values that were sent."""
        self._held_order: deque[int] = deque()
        self._held_bytes: deque[int] = deque()
        self._shared: dict[int, int] = {}
        """Start of a tensor's storage → the array whose memory it is."""

    # ---- kinds -------------------------------------------------------------------------------

    def kind_of(self, cls: type) -> int:
        found = self.kinds.get(cls)
        if found is None:
            found = self.kinds[cls] = self._classify(cls)
        return found

    def _classify(self, cls: type) -> int:
        for base in cls.__mro__:
            weak = _WEAK_TYPES.get((base.__module__, base.__name__))
            if weak is not None:
                return weak
        if issubclass(cls, _CONTAINERS):
            return CONTAINER
        numpy = sys.modules.get("numpy")
        if issubclass(cls, _SCALARS) or (numpy is not None and issubclass(cls, numpy.generic)):
            return SCALAR
        if is_dataclass(cls):
            return RECORD
        return HOLDER if cls.__module__.partition(".")[0] in _HOLDING else IGNORED

    def held_by(self, obj: Any) -> list[tuple[Any, int]]:
        """The data that the object of a library keeps in its fields."""
        fields_of = getattr(obj, "__dict__", None) or {}
        found = ((item, self.kind_of(type(item))) for item in list(fields_of.values())[:_PROBE])
        return [(item, kind) for item, kind in found if kind and kind < SCALAR]

    # ---- reading -----------------------------------------------------------------------------

    def read(self, obj: Any, kind: int, name: str, into: list[int]) -> None:
        """Append the numbers of the values that reading this object reads."""
        if kind in (CONTAINER, RECORD):
            for item, item_kind in self.items(obj, kind):
                self.read(item, item_kind, name, into)
            return
        if kind == HOLDER:
            for item, item_kind in self.held_by(obj):
                self.read(item, item_kind, name, into)
            return
        if kind == SCALAR:
            held = self.held.get(id(obj))
            if held is not None and held[0] is obj:
                into.append(held[1])
            return
        entry = self.known.get(id(obj))
        if entry is not None and entry[0]() is obj:
            number = entry[1]
        else:
            number = self._first_seen(obj, kind, name)
        if number in self.aliases:
            number = self._by_name(number, name)
        if self.heads and kind != OBJECT:
            memory = id(obj) if kind == ARRAY and obj.base is None else self._storage(obj, kind)
            heads = self.heads.get(memory)
            if heads is not None and heads[-1][2] > number:
                newer = _overlapping(heads, obj, kind, number)
                if newer:
                    into.extend(newer)
                    return
        into.append(number)

    def number_of(self, obj: Any, kind: int) -> int:
        """The number of a known object, 0 for one never seen."""
        if kind == SCALAR:
            held = self.held.get(id(obj))
            return held[1] if held is not None and held[0] is obj else 0
        entry = self.known.get(id(obj))
        return entry[1] if entry is not None and entry[0]() is obj else 0

    def holds_new(self, obj: Any, kind: int) -> bool:
        """Is there data in a container that came out of a call?"""
        found = self.held_by(obj) if kind == HOLDER else self.items(obj, kind)
        return any(item_kind < SCALAR for _, item_kind in found)

    def _first_seen(self, obj: Any, kind: int, name: str) -> int:
        base = obj.base if kind == ARRAY else obj._base if kind == TENSOR else None
        if base is not None:
            number = self.number_of(base, ARRAY)
            if number:  # a view that library code made: the data of its base
                self.known[id(obj)] = (ref(obj), number)
                return number
        return self.make(obj, kind, name)

    def _by_name(self, number: int, name: str) -> int:
        for alias, value in reversed(self.aliases[number]):
            if alias == name:
                return value
        return number

    def items(self, obj: Any, kind: int) -> Iterator[tuple[Any, int]]:
        """The data in a container, looked through as far as it is likely to hold any."""
        if kind == RECORD:
            values = [getattr(obj, item.name, None) for item in fields(obj)]
        elif isinstance(obj, dict):
            values = list(obj.values())
        else:
            values = (
                list(obj) if len(obj) <= _MOST_ITEMS else list(itertools.islice(obj, _MOST_ITEMS))
            )
        met = False
        for place, item in enumerate(values):
            kind = self.kind_of(type(item))
            if kind in (CONTAINER, RECORD):
                if item is not obj:
                    for inner in _bounded(self, item, kind, 4):
                        met = True
                        yield inner
            elif kind and kind != HOLDER:
                met = met or kind != SCALAR or id(item) in self.held
                yield item, kind
            if place == _PROBE and not met:
                return

    # ---- making ------------------------------------------------------------------------------

    def all_facts(self) -> dict[int, ValueFacts]:
        return {number: ValueFacts(*item) for number, item in self.facts.items()}

    def make(self, obj: Any, kind: int, name: str) -> int:
        """A new value; the object now has its number."""
        number = self.next_number()
        if kind == SCALAR:
            self._hold(obj, number)
            size = len(obj) if type(obj) is bytes else 8
            self.facts[number] = (name, size, (), "", type(obj).__name__)
            return number
        self.known[id(obj)] = (ref(obj), number)
        if kind == ARRAY:
            self.facts[number] = (name, obj.nbytes, obj.shape, obj.dtype, "ndarray")
        elif kind == TENSOR:
            shape = tuple(obj.shape)
            self.facts[number] = (name, _tensor_bytes(obj), shape, obj.dtype, "Tensor")
        else:
            self.facts[number] = _object_facts(obj, name)
        return number

    def arrive(self, obj: Any, sent: tuple[int, ...]) -> None:
        """An object that another process sent: what it was there."""
        self.links[self.make(obj, self.kind_of(type(obj)), "")] = sent

    def make_int(self, obj: int, name: str) -> int:
        """Of a whole number that came out of data; 0 for one that the interpreter shares."""
        if -5 <= obj < _SMALLEST_INT:
            return 0
        number = self.next_number()
        self.kinds[int] = SCALAR
        self._hold(obj, number)
        self.facts[number] = (name, 8, (), "", "int")
        return number

    def _hold(self, obj: Any, number: int) -> None:
        self.held[id(obj)] = (obj, number)
        order, most = (
            (self._held_bytes, _HELD_BYTES) if type(obj) is bytes else (self._held_order, _HELD)
        )
        order.append(id(obj))
        if len(order) > most:
            self.held.pop(order.popleft(), None)

    def still_held(self) -> set[int]:
        """Values that the program holds: what it may yet look at."""
        held = {
            number for reference, number in list(self.known.values()) if reference() is not None
        }
        return held | {one for number in held for one in self.links.get(number, ())}

    def alias(self, number: int, name: str) -> int:
        """The same object came back: readers that use the new name read the new value."""
        made = self.next_number()
        old = self.facts.get(number, ("", 0, (), "", ""))
        self.facts[made] = (name, *old[1:])
        self.aliases.setdefault(number, []).append((name, made))
        return made

    # ---- writing -----------------------------------------------------------------------------

    def write(self, obj: Any, kind: int, name: str, included: list[int], part: Any = None) -> int:
        """A new value of an object that was written to; `part` is the view that was written."""
        number = self.make(obj, kind, name)
        if kind == OBJECT:
            return number
        written = obj if part is None else part
        start = self._storage(obj, kind)
        low, high = bounds(written, self.kind_of(type(written)))
        before = self.heads.get(start, ())
        kept = [head for head in before if head[2] not in included]
        self.heads[start] = [*kept, (low, high, number)]
        return number

    def _storage(self, obj: Any, kind: int) -> int:
        """What stands for the memory of an object: the id of the array that owns it, or the address
        of a tensor's storage. A reader is older than a write that counts, so it keeps both alive."""
        if kind == TENSOR:
            start = _storage_start(obj)
            return self._shared.get(start, start)
        root = obj
        while (base := getattr(root, "base", None)) is not None:
            root = base
        return _storage_start(root) if self.kind_of(type(root)) == TENSOR else id(root)

    def share(self, tensor: Any, array: Any) -> None:
        """A tensor that lives in an array's memory."""
        self._shared[_storage_start(tensor)] = self._storage(array, ARRAY)


def _overlapping(heads: list[tuple[int, int, int]], obj: Any, kind: int, number: int) -> list[int]:
    """Writes after a value was read or made that touch its bytes."""
    low, high = bounds(obj, kind)
    return [head[2] for head in heads if head[2] > number and head[0] < high and low < head[1]]


def _bounded(values: Values, obj: Any, kind: int, depth: int) -> Iterator[tuple[Any, int]]:
    """Items of nested containers; depth ends what holds itself."""
    if depth:
        inner = (
            obj.values()
            if isinstance(obj, dict)
            else [getattr(obj, f.name, None) for f in fields(obj)]
            if kind == RECORD
            else obj
        )
        for item in itertools.islice(inner, _MOST_ITEMS):
            kind = values.kind_of(type(item))
            if kind in (CONTAINER, RECORD):
                yield from _bounded(values, item, kind, depth - 1)
            elif kind and kind != HOLDER:
                yield item, kind


def is_constant(obj: Any) -> bool:
    """May it be noted as an argument: a number, a text, or a short tuple of them?"""
    cls = type(obj)
    if cls is tuple:
        return len(obj) <= 8 and all(type(item) in CONSTANTS for item in obj)
    return cls in CONSTANTS and (cls is not str or len(obj) <= 80)


def bounds(obj: Any, kind: int) -> tuple[int, int]:
    """First byte and end of what an array or tensor may touch."""
    if kind == TENSOR:
        size = obj.element_size()
        low = obj.data_ptr()
        span = sum((n - 1) * s for n, s in zip(obj.shape, obj.stride(), strict=True) if n)
        return low, low + (span + 1) * size if obj.numel() else low
    low = high = _address(obj)
    if not obj.size:
        return low, low
    for count, stride in zip(obj.shape, obj.strides, strict=True):
        if stride < 0:
            low += (count - 1) * stride
        else:
            high += (count - 1) * stride
    return low, high + obj.itemsize


def _address(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _storage_start(tensor: Any) -> int:
    try:
        start: int = tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # fake, sparse and functional tensors have none
        start = -id(tensor)
    return start


def _tensor_bytes(tensor: Any) -> int:
    try:
        size: int = tensor.numel() * tensor.element_size()
    except (RuntimeError, NotImplementedError):  # a nested or sparse tensor
        size = 0
    return size


def _object_facts(obj: Any, name: str) -> tuple[Any, ...]:
    kind = type(obj).__name__
    size = getattr(obj, "size", None)
    if kind == "Image" or (isinstance(size, tuple) and hasattr(obj, "getbands")):
        wide, high = size if isinstance(size, tuple) else (0, 0)
        bands = len(obj.getbands())
        return (name, wide * high * bands, (high, wide, bands), str(obj.mode), kind)
    shape = getattr(obj, "shape", ())
    shown = tuple(shape) if isinstance(shape, tuple) else ()
    return (name, 0, shown, "", kind)
