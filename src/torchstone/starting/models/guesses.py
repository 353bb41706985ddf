"""Small values for what a model must be given, by the words that PyTorch code uses for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from torchstone.starting.cuts.forms import BATCH

_WIDTH = 32
_LENGTH = 16
_WORDS: tuple[tuple[str, str], ...] = (
    (r"pad(ding)?_?(id|idx|index|token)|(^|_)(eos|bos|unk|sos|cls)|_(id|idx|index)$", "0"),
    (r"drop|prob|rate$|alpha|slope|momentum|temperature|weight_decay", "0.1"),
    (r"eps|epsilon", "1e-05"),
    (r"^(use|is|with|has|do|no)_|bias|pretrain|bidirectional|affine|causal|flag", "False"),
    (r"vocab|n_?token|num_embeddings|num_(items|users|words|node|entit|rel)", "64"),
    (r"class|label|categor|n_out|out_dim$|output_(dim|size|nc|channels)$", "10"),
    (r"head", "4"),
    (r"layer|depth|block|stack|stage|num_(enc|dec)|level", "2"),
    (r"(^|_)(in|input|img|image)_?(ch|channels?|chans|nc|planes)$|^(nc|c_in|channels?)$", "3"),
    (r"patch", "8"),
    (r"(img|image|input)_?(size|res|resolution|h|w|height|width)$|^(size|resolution)$", "32"),
    (r"seq|length|max_|context|block_size|window|num_frames|horizon|n_pos", str(_LENGTH)),
    (r"kernel|ksize|^k$", "3"),
    (r"stride|dilation|group|scale|factor|ratio|expansion|mult", "1"),
    (r"padding$", "1"),
    (r"norm_layer|norm$", "nn.BatchNorm2d"),
    (r"act_layer|activation|^act$|nonlin", "nn.ReLU"),
    (r"device", "'cpu'"),
    (r"dtype", "torch.float32"),
)
_BY_KIND = {"int": str(_WIDTH), "float": "0.1", "bool": "False", "str": "'cpu'"}
_SETTINGS = (
    "cfg",
    "config",
    "args",
    "opt",
    "opts",
    "hparams",
    "hp",
    "params",
    "conf",
    "options",
    "settings",
)
_SIDES = (32, 64, 28, 224, 128, 256, 96, 299)


def is_settings(name: str) -> bool:
    """Whether an argument is an object that holds many settings."""
    return name.lower().lstrip("_") in _SETTINGS or name.lower().endswith(("config", "cfg", "args"))


def value_for(name: str, kind: str = "") -> str:
    """An expression for one argument."""
    for pattern, value in _WORDS:
        if re.search(pattern, name.lower()):
            return value
    for key, value in _BY_KIND.items():
        if key == kind.strip():
            return value
    return str(_WIDTH)


class Settings:
    """Answers for a configuration, and remembers what it was asked."""

    def __init__(self) -> None:
        self.__dict__["asked"] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __getitem__(self, name: str) -> Any:
        return self.get(name)

    def __contains__(self, _: str) -> bool:
        return False

    def get(self, name: str, default: Any = None) -> Any:
        """What a dictionary would give; a default is taken where there is one."""
        text = repr(default) if default is not None else value_for(str(name))
        self.__dict__["asked"][str(name)] = text
        return eval(text, {"torch": torch, "nn": nn}) if default is None else default

    @property
    def expression(self) -> str:
        inside = ", ".join(f"{name}={text}" for name, text in self.__dict__["asked"].items())
        return f"Settings({inside})"


def inputs_for(model: nn.Module, parameters: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Expressions for the required arguments of `forward`, the likeliest first."""
    shapes = list(dict.fromkeys(_shapes(model)))
    if not parameters:
        return
    fixed: Mapping[int, str] = {
        place: text
        for place, name in enumerate(parameters)
        if (text := _by_name(name, model)) is not None and (place or _is_tokens(name))
    }
    if 0 in fixed:
        yield tuple(fixed.get(place, fixed[0]) for place in range(len(parameters)))
    for shape in shapes:
        yield tuple(fixed.get(place, shape) if place else shape for place in range(len(parameters)))
    for first in shapes[:6]:
        for other in shapes[:6]:
            if other != first and len(parameters) > 1:
                yield (first, *(fixed.get(place, other) for place in range(1, len(parameters))))


def _is_tokens(name: str) -> bool:
    return bool(re.search(r"token|ids$|^idx$|input_id|^src$|^tgt$|words|^seqs?$", name.lower()))


def _by_name(name: str, model: nn.Module) -> str | None:
    low = name.lower()
    if _is_tokens(low):
        return f"torch.randint(0, {_vocabulary(model)}, ({BATCH}, {_LENGTH}))"
    if re.search(r"mask|cache|hidden|state|memory_key", low):
        return "None"
    if re.search(r"^adj|adjacency|laplacian", low):
        return f"torch.eye({BATCH})"
    if re.search(r"len(gth)?s?$", low):
        return f"torch.full(({BATCH},), {_LENGTH})"
    if re.search(r"^(t|time|timesteps?|steps?)$", low):
        return f"torch.randint(0, 10, ({BATCH},))"
    if re.search(r"^(y|labels?|targets?|class_?labels?)$", low):
        return f"torch.randint(0, 10, ({BATCH},))"
    return None


def _vocabulary(model: nn.Module) -> int:
    sizes = [item.num_embeddings for item in model.modules() if isinstance(item, nn.Embedding)]
    return max(min(sizes, default=10), 1)


def _shapes(model: nn.Module) -> Iterator[str]:
    """What the first layers of a model accept; registration follows use in most code."""
    for item in model.modules():
        if isinstance(item, nn.Conv2d):
            yield from (_random(item.in_channels, side, side) for side in _SIDES)
        elif isinstance(item, nn.Conv1d):
            yield from (_random(item.in_channels, side) for side in (64, 256))
        elif isinstance(item, nn.Conv3d):
            yield from (_random(item.in_channels, side, 32, 32) for side in (16, 32))
        elif isinstance(item, nn.ConvTranspose2d):
            yield from (_random(item.in_channels, side, side) for side in (1, 4, 8))
        elif isinstance(item, nn.Embedding):
            yield f"torch.randint(0, {item.num_embeddings}, ({BATCH}, {_LENGTH}))"
            yield f"torch.randint(0, {item.num_embeddings}, ({BATCH},))"
        elif isinstance(item, nn.RNNBase):
            yield _random(_LENGTH, item.input_size)
        elif isinstance(item, nn.Linear):
            yield _random(item.in_features)
            yield _random(_LENGTH, item.in_features)
            if item.in_features in (784, 1024, 3072):
                side = {784: (1, 28, 28), 1024: (1, 32, 32), 3072: (3, 32, 32)}[item.in_features]
                yield _random(*side)
        elif isinstance(item, nn.MultiheadAttention | nn.LayerNorm):
            width = (
                item.embed_dim
                if isinstance(item, nn.MultiheadAttention)
                else item.normalized_shape[-1]
            )
            yield _random(_LENGTH, width)
        elif isinstance(item, nn.BatchNorm2d):
            yield from (_random(item.num_features, side, side) for side in _SIDES[:2])
    yield from (_random(3, side, side) for side in _SIDES[:2])


def _random(*sides: int) -> str:
    return f"torch.randn({', '.join(map(str, (BATCH, *sides)))})"
