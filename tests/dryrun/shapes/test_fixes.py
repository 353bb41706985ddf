"""Changes that would make a refused call work."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from torchstone.dryrun.shapes.fixes import candidates


def working(func: object, *args: object, module: nn.Module | None = None) -> list[str]:
    found = []
    for candidate in candidates(func, args, {}, module):
        try:
            candidate.call(func, args, {})
        except (RuntimeError, ValueError, IndexError):
            continue
        found.append(candidate.en)
    return found


def test_a_missing_flatten_comes_before_another_number_of_features() -> None:
    layer = nn.Linear(8 * 4, 2)
    found = working(F.linear, torch.randn(3, 8, 4), layer.weight, layer.bias)
    assert found[0].startswith("flatten before the layer")


def test_channels_last() -> None:
    layer = nn.Conv2d(3, 4, 3)
    found = working(torch.conv2d, torch.randn(2, 8, 8, 3), layer.weight, layer.bias)
    assert found[0] == "channels are last: x.permute(0, 3, 1, 2)"


def test_transposed_operand() -> None:
    assert working(torch.matmul, torch.randn(2, 3), torch.randn(5, 3)) == [
        "transpose the right operand: .transpose(-2, -1)"
    ]


def test_classes_on_the_last_axis() -> None:
    found = working(F.cross_entropy, torch.randn(2, 5, 7), torch.zeros(2, 5, dtype=torch.int64))
    assert found[0].startswith("classes are on the last axis")


def test_a_view_with_the_batch_written_out() -> None:
    found = working(torch.Tensor.view, torch.randn(4, 28), 32, 28)
    assert "leave the batch axis open: .view(-1, 28)" in found


def test_the_layer_is_resized_for_later_calls_too() -> None:
    layer = nn.Linear(9, 2)
    x = torch.randn(3, 8)
    (candidate,) = [
        item
        for item in candidates(F.linear, (x, layer.weight, layer.bias), {}, layer)
        if item.changes_layer
    ]
    assert candidate.call(F.linear, (x, layer.weight, layer.bias), {}).shape == (3, 2)
    assert layer(x).shape == (3, 2)
