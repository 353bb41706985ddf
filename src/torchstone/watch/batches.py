"""What can be known of a batch from outside: its size, and whether it was there before."""

from __future__ import annotations

import ctypes
import math
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchstone.watch.beat import Call
from torchstone.watch.discover import tensors_in
from torchstone.watch.glance import glance

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


class Batches:
    """Follows the size of batches, so that thresholds know of it."""

    def __init__(self) -> None:
        self.stretch = 0.0
        """How much further a value may go because this batch is of another size."""
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
        self._elements = 0
        self._losses: deque[tuple[Tensor, Any]] = deque()

    def see(self, call: Call, batch: Any) -> None:
        """Note the size and a digest of the tensors of a call."""
        digest = 0
        elements = 0
        regression = False
        for place, tensor in enumerate(tensors_in(batch)):
            if place == 4:
                break
            elements += tensor.numel()
            whole = tensor.dtype in WHOLE
            if place and tensor.is_floating_point():
                regression = True  # a second array of floats is what is to be predicted
            call.labelled = whole and not regression
            if place:
                continue
            call.batch_size = tensor.shape[0] if tensor.dim() else 1
            if tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.numel():
                digest = _digest(tensor)
        call.batch_digest = digest
        call.batch_indices = _indices(batch)
        call.batch_elements = elements

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
            self._length = tensor.numel() / max(tensor.shape[0], 1) if tensor.dim() else 1.0
            if torch.is_autocast_enabled(kind):
                self.autocast = torch.get_autocast_dtype(kind)
            if kind == "cpu" and tensor.is_floating_point() and tensor.numel():
                wide = tensor if tensor.dtype == torch.float32 else tensor.float()
                seen = glance(wide, _SAMPLED)
                self._scale, self._sign = seen.scale, seen.negative / seen.size
                self._calls += 1
                self._dead = _dead(tensor) if self._calls % _LOOK_EVERY == 0 else None
            elif kind == "cpu" and tensor.dtype in WHOLE and tensor.numel() >= _TOKENS:
                self._variety = len(set(_few(tensor, _TOKENS)[:_TOKENS].tolist())) / _TOKENS
            break

    def fill(self, call: Call) -> None:
        """What the model was given in this call."""
        call.input_scale, self._scale = self._scale, math.nan
        call.input_sign, self._sign = self._sign, math.nan
        call.token_variety, self._variety = self._variety, math.nan
        call.dead_inputs, self._dead = self._dead, None
        if self._elements:  # what the model sees counts, not what the step was called with
            call.batch_elements, self._elements = self._elements, 0

    def changed(self, call: Call) -> bool:
        """The batches have another size from now on."""
        size = (float(call.batch_elements), self._length or 1.0)
        self.stretch = 0.0
        if not size[0]:
            return False
        if not self._usual:
            self._usual = size
        away = [abs(math.log(now / usual)) for now, usual in zip(size, self._usual, strict=True)]
        if max(away) < math.log(_CHANGED):
            self._other = 0
            return False
        self.stretch = 0.5 * max(away)
        self._other += 1
        if self._other < _PATIENCE or self._changes >= _HABIT:
            return False
        self._usual, self._other = size, 0
        self._changes += 1
        return True

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
    if type(tensor) is not Tensor or not tensor.is_contiguous() or not tensor.data_ptr():
        return zlib.crc32(_few(tensor)[:_SAMPLED].tobytes())
    place, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
    if size <= _PIECES * _PIECE:
        return zlib.crc32(ctypes.string_at(place, size))
    last = place + size - _PIECE
    pieces = range(place, last + 1, (last - place) // (_PIECES - 1))
    return zlib.crc32(b"".join(ctypes.string_at(piece, _PIECE) for piece in pieces))


def _few(tensor: Tensor, count: int = _SAMPLED) -> NDArray[Any]:
    """Values spread over a tensor on the host, as many as are asked for or up to twice that."""
    flat = tensor.detach().reshape(-1)
    if flat.dtype == torch.bfloat16:
        flat = flat.view(torch.int16)
    values = flat.numpy()
    return np.asarray(values[:: max(1, len(values) // count)][: 2 * count])


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


def _indices(batch: Any) -> list[int]:
    """Dataset indices, when the batch carries them under a name that says so."""
    for mapping in _mappings(batch):
        for name in ("index", "indices", "idx", "ids", "sample_id", "sample_ids"):
            value = mapping.get(name)
            if isinstance(value, Tensor) and value.dim() <= 1 and not value.is_floating_point():
                if value.device.type == "cpu":
                    return [int(item) for item in value.reshape(-1)[:4096]]
    return []


def _mappings(batch: Any, depth: int = 3) -> Iterator[Mapping[Any, Any]]:
    if isinstance(batch, Mapping):
        yield batch
        for item in batch.values():
            yield from _mappings(item, depth - 1) if depth else ()
    elif isinstance(batch, (list, tuple)) and depth:
        for item in batch[:32]:
            yield from _mappings(item, depth - 1)
