"""Pictures, videos, sounds and series of numbers in the shapes that transformers models take."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchstone.runtime.model_hubs.hub_scene import (
    AUDIO,
    DEFAULT_IMAGE,
    DEFAULT_LENGTH,
    VISION,
    Scene,
    first_setting,
    part_of,
    sides,
    whole,
)

DEFAULT_SAMPLES = 16_000
"""One second of sound."""
_PICTURE_TOKENS = (
    "image_seq_length",
    "image_seq_len",
    "mm_tokens_per_image",
    "num_image_tokens",
    "num_query_tokens",
)
_BANDS = (
    "num_mel_bins",
    "input_feat_per_channel",
    "feature_projection_input_dim",
    "input_dim",
    "n_mels",
)
_FIRST = (nn.Linear, nn.Conv1d, nn.Conv2d)


def pictures(scene: Scene) -> torch.Tensor:
    """One picture for each row of the batch, or its frames."""
    source = part_of(scene.config, VISION) or scene.config
    size = first_setting(source, ("image_size", "img_size", "input_size"), scene.config)
    height, width = sides(size)
    channels = whole(source, ("num_channels", "in_channels", "in_chans"), 3)
    frames = getattr(source, "num_frames", None)
    if isinstance(frames, int) and frames > 1:
        return scene.floats(scene.batch, frames, channels, height, width)
    return scene.floats(scene.batch, channels, height, width)


def videos(scene: Scene) -> dict[str, Any]:
    """One clip for each row of the batch."""
    size = sides(first_setting(scene.config, ("image_size", "crop_size"), scene.config))
    frames = whole(scene.config, ("frames_per_clip", "num_frames"), 16)
    return {"pixel_values_videos": scene.floats(scene.batch, frames, 3, *size)}


def picture_tokens(scene: Scene, made: torch.Tensor) -> int:
    """How many tokens one picture becomes: as the encoder gives, or as the configuration says."""
    encode = getattr(scene.model, "get_image_features", None)
    on_meta = all(item.is_meta for item in scene.model.parameters())
    if encode is None or not on_meta:
        return whole(scene.config, _PICTURE_TOKENS, 0)
    try:
        with torch.no_grad():
            features = encode(pixel_values=made)
    except Exception:  # an encoder that needs more than pictures: then the configuration may say
        return whole(scene.config, _PICTURE_TOKENS, 0)
    rows = getattr(features, "pooler_output", features)
    rows = list(rows) if isinstance(rows, (list, tuple)) else [rows]
    sizes = [row.shape[:-1].numel() for row in rows if isinstance(row, torch.Tensor)]
    return sum(sizes) // scene.batch


def patched(scene: Scene) -> tuple[dict[str, Any], int]:
    """Pictures that come as rows of patches, with a table of how each was cut."""
    vision = part_of(scene.config, VISION) or scene.config
    merge = getattr(vision, "spatial_merge_size", 2)
    patch = getattr(vision, "patch_size", 14)
    side = max(DEFAULT_IMAGE // (patch * merge), 1) * merge
    channels = getattr(vision, "in_channels", getattr(vision, "num_channels", 3))
    size = channels * getattr(vision, "temporal_patch_size", 1) * patch * patch
    grid = torch.tensor([[1, side, side]] * scene.batch)
    patches = scene.floats(scene.batch * side * side, size)
    return {"pixel_values": patches, "image_grid_thw": grid}, side * side // (merge * merge)


def spectrum(scene: Scene) -> dict[str, Any]:
    """A spectrogram: bands by frames where the model fixes the frames or begins with a convolution
    over them, else frames by bands."""
    source = part_of(scene.config, AUDIO) or scene.config
    bands = whole(source, _BANDS, 80)
    positions = getattr(source, "max_source_positions", None)
    if isinstance(positions, int) and hasattr(source, "num_mel_bins"):
        return {"input_features": scene.floats(scene.batch, bands, 2 * positions)}
    frames = scene.length if scene.length is not None else DEFAULT_LENGTH
    first = next((item for item in scene.model.modules() if isinstance(item, _FIRST)), None)
    encodes = not getattr(scene.config, "is_encoder_decoder", False)
    if encodes and isinstance(first, nn.Conv1d) and first.in_channels == bands:
        return {"input_features": scene.floats(scene.batch, bands, frames)}
    return {"input_features": scene.floats(scene.batch, frames, bands)}


def waveform(scene: Scene) -> dict[str, Any]:
    """One second of sound, or a spectrogram where the model calls that its values."""
    config = scene.config
    if hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
        return {"input_values": scene.floats(scene.batch, config.max_length, config.num_mel_bins)}
    samples = whole(config, ("sampling_rate", "sample_rate"), DEFAULT_SAMPLES)
    if "padding_mask" in scene.arguments or hasattr(config, "codebook_size"):
        channels = whole(config, ("audio_channels",), 1)
        return {"input_values": scene.floats(scene.batch, channels, samples)}
    return {"input_values": scene.floats(scene.batch, samples)}


def series(scene: Scene) -> dict[str, Any]:
    """What is known of a series of numbers."""
    length = whole(scene.config, ("context_length",), scene.tokens())
    channels = whole(scene.config, ("num_input_channels", "input_size"), 1)
    return {"past_values": scene.floats(scene.batch, length, channels)}
