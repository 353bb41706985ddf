"""Functions of numpy, PIL and torch in a program: who may call them, and what comes back."""

from __future__ import annotations

import numpy as np
import scipy.stats
import torch
from PIL import Image, ImageEnhance

from torchstone.dataflow import PipelineMigrator


def migrated(*names: str, **options):
    return PipelineMigrator.from_plan(
        {"context_device_map": dict.fromkeys(names, "cuda:0")}, allow_rounding=True, **options
    )


def a_picture() -> Image.Image:
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (31, 45, 3), np.uint8))
    picture.info["dpi"] = (72, 72)
    return picture


def test_methods_of_pictures() -> None:
    picture = a_picture()

    def pipeline():
        small = picture.resize((20, 17), Image.Resampling.BILINEAR)
        turned = small.rotate(33).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        bright = ImageEnhance.Brightness(turned).enhance(1.4)
        return bright.convert("L").crop((2, 3, 30, 12))

    names = "resize rotate transpose convert crop".split()
    expected = pipeline()
    before = {name: vars(Image.Image)[name] for name in names}
    with migrated(*(f"PIL.Image.Image.{name}" for name in names), "PIL.Image.blend") as migrator:
        got = pipeline()
        stats = migrator.get_stats()
    assert got.tobytes() == expected.tobytes()
    assert (got.mode, got.size, got.info) == (expected.mode, expected.size, expected.info)
    assert stats["calls_migrated"] == 6
    assert stats["calls_fallback"] == 0
    assert all(vars(Image.Image)[name] is value for name, value in before.items())


def test_calls_of_libraries_are_not_the_pipelines() -> None:
    values = np.arange(12.0)
    expected = scipy.stats.zscore(values)
    with migrated("numpy.mean", "numpy.std", "numpy.sqrt") as migrator:
        got = scipy.stats.zscore(values)
        assert migrator.get_stats()["calls_migrated"] == 0
        mean = np.mean(values)
        assert migrator.get_stats()["calls_migrated"] == 1
    assert np.array_equal(expected, got)
    assert type(mean) is np.float64
    assert mean == 5.5


def test_a_kept_array_is_an_array_to_the_program() -> None:
    image = np.random.default_rng(0).integers(0, 256, (12, 10, 3), np.uint8)
    operators = [
        {
            "context": "numpy.pad",
            "function": "numpy.pad",
            "device": "cuda:0",
            "keep_on_device": True,
        }
    ]
    plan = {"context_device_map": {"numpy.pad": "cuda:0"}, "operators": operators}

    def pipeline():
        padded = np.pad(image, ((1, 1), (2, 2), (0, 0)))
        scaled = padded / 255.0
        part = (scaled[2:8, 1:] - 0.5).astype(np.float32)
        return part.transpose(2, 0, 1), padded.mean(), np.stack([padded, padded])

    expected = pipeline()
    with PipelineMigrator.from_plan(plan):
        got = pipeline()
    assert got[0].shape == expected[0].shape
    assert got[0].dtype == expected[0].dtype
    assert np.array_equal(expected[0], np.asarray(got[0]))
    assert expected[1] == got[1]
    assert np.array_equal(expected[2], got[2])


def test_tensors_that_need_gradients_stay() -> None:
    x = torch.randn(1, 3, 4, 4, requires_grad=True)
    with migrated("torch.nn.functional.interpolate") as migrator:
        out = torch.nn.functional.interpolate(x, scale_factor=2.0)
        out.sum().backward()
        (fallback,) = migrator.fallbacks()
    assert x.grad is not None
    assert fallback.reason.en == "an argument requires gradients"
    assert "no_grad" in fallback.edit.en
