"""Inputs of transformers models, as their configuration and the arguments of forward tell.

Integers that the model's code looks at (which token is an image, how an image is cut) are real
tensors; everything else is on the meta device.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from torchstone.runtime.model_hubs.hub_media import (
    patched,
    picture_tokens,
    pictures,
    series,
    spectrum,
    videos,
    waveform,
)
from torchstone.runtime.model_hubs.hub_scene import VISION, Scene, part_of

TEXT_BESIDE_IMAGE = 32
"""Least number of text tokens in a prompt with an image."""

Maker = Callable[[Scene], dict[str, Any]]


def hub_inputs(
    model: nn.Module, config: Any, batch: int = 1, length: int | None = None, train: bool = False
) -> dict[str, Any] | None:
    """Keyword inputs, or None when the model's main input is of a kind that is not known here."""
    scene = Scene(model, config, batch, length, train)
    main = getattr(model, "main_input_name", "input_ids")
    main = main if isinstance(main, str) else main[0]
    if main not in scene.arguments:  # a part of a larger model keeps that model's word
        main = next((name for name in _MAKERS if name in scene.arguments), "")
    if "grid_thw" in scene.arguments:
        made = _encoder_of_patches(scene)
    elif main in _MAKERS:
        made = _MAKERS[main](scene)
    else:
        return None
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in scene.arguments:
        decoder = getattr(config, "decoder", None) or scene.text
        made["decoder_input_ids"] = scene.integers(batch, scene.tokens(limit_from=decoder))
    if train:
        made.update(_labels(scene, made))
    return made if not missing_arguments(model, made) else None


def missing_arguments(model: nn.Module, made: dict[str, Any]) -> list[str]:
    """What the model's forward demands and is not there."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, item in inspect.signature(model.forward).parameters.items()
        if item.default is inspect.Parameter.empty and item.kind not in kinds and name not in made
    ]


def leaves_out_pictures(model: nn.Module, config: Any, made: dict[str, Any]) -> bool:
    """Was a model that can look at pictures given none?"""
    takes = "pixel_values" in inspect.signature(model.forward).parameters
    return takes and part_of(config, VISION) is not None and "pixel_values" not in made


def _labels(scene: Scene, made: dict[str, Any]) -> dict[str, Any]:
    """What to learn: the next tokens of a text, or one class for each picture or sound."""
    if "labels" not in scene.arguments:
        return {}
    kind = type(scene.model).__name__
    if "decoder_input_ids" in made:
        return {"labels": torch.empty_like(made["decoder_input_ids"])}
    if "input_ids" in made and not kind.endswith(("SequenceClassification", "MultipleChoice")):
        return {"labels": torch.empty_like(made["input_ids"], device="meta")}
    if kind.endswith("Classification"):
        return {"labels": scene.integers(scene.batch)}
    return {}


def _text(scene: Scene) -> dict[str, Any]:
    looks = part_of(scene.config, VISION) or hasattr(scene.config, "image_size")
    if looks and "pixel_values" in scene.arguments:
        seen = _seen(scene)
        if seen is not None:
            return seen
    return {"input_ids": scene.integers(scene.batch, scene.tokens())}


def _seen(scene: Scene) -> dict[str, Any] | None:
    """A text with one picture in each row; None when it is not known how a picture enters it."""
    token = _image_token(scene.config)
    if "image_grid_thw" in scene.arguments:
        picture, count = patched(scene)
    else:
        picture = {"pixel_values": pictures(scene)}
        if not isinstance(token, int):  # both are encoded apart, as in CLIP
            return {"input_ids": scene.integers(scene.batch, scene.tokens()), **picture}
        count = picture_tokens(scene, picture["pixel_values"])
    cut = hasattr(scene.config, "image_grid_pinpoints")  # into pieces that its processor chooses
    if not count or not isinstance(token, int) or cut:
        return None
    ids = _prompt(scene, token, count)
    if "mm_token_type_ids" in scene.arguments:
        picture["mm_token_type_ids"] = (ids == token).long()
    return {"input_ids": ids, **picture}


def _image_token(config: Any) -> Any:
    return getattr(config, "image_token_id", getattr(config, "image_token_index", None))


def _prompt(scene: Scene, token: int, count: int) -> torch.Tensor:
    """Real token numbers: the model looks for those that stand for the picture."""
    length = max(scene.tokens(), count + TEXT_BESIDE_IMAGE)
    special = set(_special(scene.config))
    plain = next(number for number in range(3, 10_000) if number not in special)
    ids = torch.full((scene.batch, length), plain, dtype=torch.int64)
    ids[:, 1 : 1 + count] = token
    start = getattr(scene.config, "vision_start_token_id", None)
    if isinstance(start, int):
        ids[:, 0] = start
    return ids


def _special(config: Any) -> Iterator[int]:
    """Numbers of tokens that mean something to the model."""
    for part in (config, getattr(config, "text_config", config)):
        for name, value in vars(part).items():
            if "token" in name and isinstance(value, int):
                yield value


def _picture(scene: Scene) -> dict[str, Any]:
    if "input_ids" in scene.arguments and isinstance(_image_token(scene.config), int):
        seen = _seen(scene)
        if seen is not None:
            return seen
    made: dict[str, Any] = {"pixel_values": pictures(scene)}
    words = scene.arguments.get("input_ids")
    if words is not None and getattr(scene.config, "text_config", None) is not None:
        made["input_ids"] = scene.integers(scene.batch, min(scene.tokens(), 64))
    return made


def _encoder_of_patches(scene: Scene) -> dict[str, Any]:
    """The vision part alone: its first argument is the patches, whatever it is called."""
    picture, _ = patched(scene)
    first = next(iter(scene.arguments))
    return {first: picture["pixel_values"], "grid_thw": picture["image_grid_thw"]}


_MAKERS: dict[str, Maker] = {
    "input_ids": _text,
    "pixel_values": _picture,
    "pixel_values_videos": videos,
    "input_features": spectrum,
    "input_values": waveform,
    "past_values": series,
}
"""By the model's main input."""


def describe_shapes(made: dict[str, Any]) -> str:
    """`input_ids (1, 1024) int64, …`: what was made, for a note."""
    return ", ".join(
        f"{name} {tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
        for name, value in made.items()
        if isinstance(value, torch.Tensor)
    )
