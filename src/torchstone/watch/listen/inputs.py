"""What can be known of a batch from outside: its size, and whether it was there before."""

from __future__ import annotations

import ctypes
import math
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.core.text import Text
from torchstone.watch.listen.discover import tensors_in
from torchstone.watch.measure.call import Batch, ModelInput
from torchstone.watch.read.tensor_summary import address_of, summarise

_SAMPLED = 64
_TOKENS = 100
WHOLE = (torch.int64, torch.int32)
_PIECES = 8
_PIECE = 64  # bytes
_LOOK_EVERY = 4
_ROWS = 8
_MOST_FEATURES = 512
_PATIENCE = 4  # the last batch of an epoch is smaller; four in a row are a new size
_CHANGED = 1.4
_HABIT = 4  # sizes that change again and again are how this program works


class Size(NamedTuple):
    """How the size of a batch stands to the usual one."""

    stretch: float
    """How much further a value may go because the batch is of another size."""
    is_new: bool
    """The batches have another size from now on."""


class Batches:
    """Follows the size of batches, so that thresholds know of it."""

    def __init__(self) -> None:
        self._usual: tuple[float, float] | None = None
        """Elements of a batch, and of one sample: sequences may grow while batches shrink."""
        self._length = 0.0
        self._changes = 0
        self._other = 0
        self.autocast: torch.dtype | None = None
        """The narrow dtype of an autocast region that the model was called in."""
        self.attacked = False
        """An input wanted a gradient of its own: adversarial examples, say."""
        self.elsewhere = ""
        """The device of inputs that are not on the host: looking would mean waiting for it."""
        self._scale = self._sign = self._variety = math.nan
        self._dead: int | None = None
        self._calls = 0
        self._rows = 0
        """Samples in the last input of the model."""
        self._elements = self._given = 0
        """Of the input of the model, and of the batch that the step was called with."""
        self._losses: deque[tuple[Tensor, Any]] = deque()

    def see(self, batch: Any) -> Batch:
        """The size and a digest of the tensors of a call."""
        digest = size = elements = 0
        regression = labelled = False
        for place, tensor in enumerate(tensors_in(batch)):
            if place == 4:
                break
            elements += tensor.numel()
            whole = tensor.dtype in WHOLE
            if place and tensor.is_floating_point():
                regression = True  # a second array of floats is what is to be predicted
            labelled = whole and not regression
            if place:
                continue
            size = tensor.shape[0] if tensor.dim() else 1
            if tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.numel():
                digest = _digest(tensor)
        self._given = elements
        return Batch(size, elements, digest, _indices(batch), labelled)

    def model_called(self, args: Any, kwargs: Any) -> None:
        """What the model is given; evaluation does not count."""
        if not torch.is_grad_enabled():
            return
        for tensor in tensors_in((args, kwargs)):
            if tensor.layout != torch.strided or tensor.is_nested:
                continue
            kind = tensor.device.type
            self.elsewhere = "" if kind == "cpu" else kind
            self.attacked = self.attacked or (tensor.is_leaf and tensor.requires_grad)
            if tensor.grad_fn is not None:  # of another model: it moves as that one learns
                break
            self._elements = tensor.numel()
            self._rows = tensor.shape[0] if tensor.dim() else 1
            self._length = tensor.numel() / max(tensor.shape[0], 1) if tensor.dim() else 1.0
            if torch.is_autocast_enabled(kind):
                self.autocast = torch.get_autocast_dtype(kind)
            if kind == "cpu" and tensor.is_floating_point() and tensor.numel():
                wide = tensor if tensor.dtype == torch.float32 else tensor.float()
                seen = summarise(wide, _SAMPLED)
                self._scale, self._sign = seen.scale, seen.negative / seen.size
                self._calls += 1
                self._dead = _dead(tensor) if self._calls % _LOOK_EVERY == 0 else None
            elif kind == "cpu" and tensor.dtype in WHOLE and tensor.numel() >= _TOKENS:
                self._variety = _variety(tensor)
            break

    def finish(self, batch: Batch) -> tuple[Batch, ModelInput]:
        """The batch of this call, and what the model was given in it."""
        given = ModelInput(self._scale, self._sign, self._variety, self._dead)
        self._scale = self._sign = self._variety = math.nan
        self._dead = None
        # what the model sees counts, not what the step was called with, if it was called with it
        size, elements = batch.size or self._rows, self._elements or batch.elements
        self._elements = self._given = 0
        return replace(batch, size=size, elements=elements), given

    @property
    def stretch(self) -> float:
        """How much further a value may go because the batch of this call is of another size."""
        return self._stretch((float(self._elements or self._given), self._length or 1.0))

    def _stretch(self, size: tuple[float, float]) -> float:
        if size == self._usual or not size[0] or not self._usual:
            return 0.0
        away = [abs(math.log(now / usual)) for now, usual in zip(size, self._usual, strict=True)]
        if max(away) < math.log(_CHANGED):
            return 0.0
        # a small last batch is a noisy one, and batch norm makes it worse
        return (2.0 if size[0] < self._usual[0] else 0.5) * max(away)

    def follow_size(self, batch: Batch) -> Size:
        """How the size of this batch stands to the usual one, which it may become."""
        size = (float(batch.elements), self._length or 1.0)
        if not self._usual and size[0]:
            self._usual = size
        stretch = self._stretch(size)
        if not stretch:
            self._other = 0 if size[0] else self._other
            return Size(0.0, False)
        self._other += 1
        if self._other < _PATIENCE or self._changes >= _HABIT:
            return Size(stretch, False)
        self._usual, self._other = size, 0
        self._changes += 1
        return Size(stretch, True)

    def size_text(self, batch: Batch) -> Text:
        """What the batches have become."""
        size = f"{batch.size} × {batch.elements // max(batch.size, 1)}"
        return Text(
            f"input size changed to {size} values: relearning the baseline",
            f"输入大小变为 {size} 个值：重新学习基线",
        )

    def later(self, loss: Tensor) -> float | None:
        """A loss on a device: copied without waiting, and read when it has arrived."""
        host = torch.empty((), dtype=torch.float32, pin_memory=loss.device.type == "cuda")
        host.copy_(loss.detach().reshape(()).float(), non_blocking=True)
        event = None
        if loss.device.type == "cuda":
            event = torch.cuda.Event()
            event.record()
        self._losses.append((host, event))
        newest = None
        while self._losses and (self._losses[0][1] is None or self._losses[0][1].query()):
            newest = float(self._losses.popleft()[0])
        return newest


def _digest(tensor: Tensor) -> int:
    """Of values spread over a tensor on the host; of a plain one, pieces of its bytes."""
    if type(tensor) is not Tensor or not tensor.is_contiguous():
        return zlib.crc32(_few(tensor)[:_SAMPLED].tobytes())
    place, size = address_of(tensor), tensor.numel() * tensor.element_size()
    if not place:
        return 0
    if size <= _PIECES * _PIECE:
        return zlib.crc32(ctypes.string_at(place, size))
    last = place + size - _PIECE
    pieces = range(place, last + 1, (last - place) // (_PIECES - 1))
    return zlib.crc32(b"".join(ctypes.string_at(piece, _PIECE) for piece in pieces))


def _variety(tensor: Tensor) -> float:
    """Share of different values; the distance shares no factor with the length of a row."""
    length = max(tensor.shape[-1] if tensor.dim() else 1, 1)
    distance = tensor.numel() // _TOKENS
    while math.gcd(distance, length) > 1:
        distance -= 1
    values = tensor.detach().reshape(-1)[::distance][:_TOKENS]
    return len(set(values.tolist())) / _TOKENS


def _few(tensor: Tensor) -> NDArray[Any]:
    """Values spread over a tensor on the host, as many as are asked for or up to twice that."""
    flat = tensor.detach().reshape(-1)
    if flat.dtype == torch.bfloat16:
        flat = flat.view(torch.int16)
    values = flat.numpy()
    return np.asarray(values[:: max(1, len(values) // _SAMPLED)][: 2 * _SAMPLED])


def _dead(tensor: Tensor) -> int | None:
    """Features (channels of a picture) that are the same wherever we look."""
    if tensor.dim() < 2 or tensor.dtype != torch.float32 or tensor.shape[0] < 4:
        return None
    values = tensor.detach().numpy()[:_ROWS]
    if tensor.dim() == 4:
        step = max(1, max(values.shape[2:]) // 4)
        values = np.moveaxis(values[:, :, ::step, ::step], 1, -1)
    if not 1 < values.shape[-1] <= _MOST_FEATURES:
        return None
    table = values.reshape(-1, values.shape[-1])[:_SAMPLED]
    return int((table == table[0]).all(axis=0).sum())


def _indices(batch: Any) -> tuple[int, ...]:
    """Dataset indices, when the batch carries them under a name that says so."""
    for mapping in _mappings(batch):
        for name in ("index", "indices", "idx", "ids", "sample_id", "sample_ids"):
            value = mapping.get(name)
            if isinstance(value, Tensor) and value.dim() <= 1 and not value.is_floating_point():
                if value.device.type == "cpu":
                    return tuple(int(item) for item in value.reshape(-1)[:4096])
    return ()


def _mappings(batch: Any, depth: int = 3) -> Iterator[Mapping[Any, Any]]:
    if isinstance(batch, Mapping):
        yield batch
        for item in batch.values():
            yield from _mappings(item, depth - 1) if depth else ()
    elif isinstance(batch, (list, tuple)) and depth:
        for item in batch[:32]:
            yield from _mappings(item, depth - 1)
