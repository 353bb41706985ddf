"""What a transformers model and its configuration say about inputs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

DEFAULT_LENGTH = 1024
DEFAULT_IMAGE = 224
VISION = ("vision_config", "vision_tower_config", "image_config", "vision_encoder_config")
AUDIO = ("audio_config", "audio_encoder_config", "encoder_config", "speech_encoder_config")
"""Names under which a configuration keeps those of its parts."""
_LENGTHS = (
    "max_position_embeddings",
    "n_positions",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_len",
    "n_ctx",
)


@dataclass(frozen=True)
class Scene:
    """A model, its configuration and the sizes that are asked for."""

    model: nn.Module
    config: Any
    batch: int
    length: int | None
    train: bool

    @property
    def arguments(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.model.forward).parameters)

    @property
    def text(self) -> Any:
        """The part of the configuration that is about text."""
        getter = getattr(self.config, "get_text_config", None)
        return getter() if getter is not None else self.config

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the weights, which is that of pictures and sounds."""
        kinds = (item.dtype for item in self.model.parameters() if item.is_floating_point())
        return next(kinds, torch.float32)

    def tokens(self, *, limit_from: Any = None) -> int:
        """How long a text is: as asked, or as long as the model's positions go, up to 1024."""
        if self.length is not None:
            return self.length
        source = self.text if limit_from is None else limit_from
        limits = [value for name in _LENGTHS if isinstance(value := getattr(source, name, 0), int)]
        return min([DEFAULT_LENGTH, *(value for value in limits if value > 0)])

    def floats(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=self.dtype, device="meta")

    def integers(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int64, device="meta")


def first_setting(source: Any, names: tuple[str, ...], other: Any) -> Any:
    """The first of these names that a configuration or one of its parts gives."""
    for part in (source, other, *parts_of_config(source), *parts_of_config(other)):
        for name in names:
            value = getattr(part, name, None)
            if value:
                return value
    return DEFAULT_IMAGE


def parts_of_config(config: Any) -> Iterator[Any]:
    """The configurations inside a configuration, however deep."""
    for value in list(vars(config).values()):
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            yield value
            yield from parts_of_config(value)


def sides(size: Any) -> tuple[int, int]:
    """Height and width from a number, a pair or a table."""
    if isinstance(size, dict):
        found = [size[name] for name in ("height", "width") if name in size] or list(size.values())
        return int(found[0]), int(found[-1])
    if isinstance(size, (list, tuple)):
        return int(size[-2] if len(size) > 1 else size[0]), int(size[-1])
    return int(size), int(size)


def whole(source: Any, names: tuple[str, ...], default: int) -> int:
    """The first of these names that is a number greater than 0."""
    values = (getattr(source, name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), default)


def part_of(config: Any, names: tuple[str, ...]) -> Any:
    """The first of these parts that a configuration has, or None."""
    return next((part for name in names if (part := getattr(config, name, None)) is not None), None)
