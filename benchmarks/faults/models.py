"""Three kinds of small models with synthetic data that they really learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Source = Callable[[int], tuple[Tensor, Tensor]]
_VOCABULARY = 32
_LENGTH = 16
_CLASSES = 8


@dataclass(frozen=True)
class Kind:
    """How a model, its optimizer and its data are made."""

    build: Callable[[], tuple[nn.Module, torch.optim.Optimizer, Any]]
    loss: Callable[[Tensor, Tensor], Tensor]
    source: Callable[[torch.Generator], Source]


class Language(nn.Module):
    """A causal transformer over a small alphabet."""

    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_VOCABULARY, width)
        self.position = nn.Parameter(torch.randn(_LENGTH * 4, width) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, _VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


def _language() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, total_iters=50)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3000)
    return model, optimizer, torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, fall], [50])


def _text(generator: torch.Generator) -> Source:
    """Sentences of a Markov grammar with rare words."""
    table = torch.rand(_VOCABULARY, _VOCABULARY, generator=torch.Generator().manual_seed(7)) ** 8
    table = table / table.sum(1, keepdim=True)

    def batch(size: int) -> tuple[Tensor, Tensor]:
        tokens = [torch.randint(_VOCABULARY, (size,), generator=generator)]
        for _ in range(_LENGTH):
            tokens.append(torch.multinomial(table[tokens[-1]], 1, generator=generator)[:, 0])
        text = torch.stack(tokens, 1)
        return text[:, :-1], text[:, 1:]

    return batch


def _images() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, _CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    return model, optimizer, None


def _pictures(generator: torch.Generator) -> Source:
    """Gratings of eight angles under noise."""
    grid = torch.linspace(-1, 1, 12)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")

    def batch(size: int) -> tuple[Tensor, Tensor]:
        label = torch.randint(_CLASSES, (size,), generator=generator)
        angle = label * torch.pi / _CLASSES
        phase = torch.rand(size, generator=generator) * 6.28
        wave = torch.sin(
            8 * (xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None])
            + phase[:, None, None]
        )
        noise = torch.randn(size, 3, 12, 12, generator=generator)
        return 0.7 * wave[:, None] + 1.5 * noise, label

    return batch


class Series(nn.Module):
    """A recurrent forecaster with a gated head."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.recurrent = nn.GRU(4, width, num_layers=2, batch_first=True)
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.head = nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden, _ = self.recurrent(x)
        return self.head(torch.sigmoid(self.gate(hidden)) * torch.tanh(self.value(hidden)))


def _series() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    model = Series()
    return model, torch.optim.Adam(model.parameters(), lr=2e-3), None


def _waves(generator: torch.Generator) -> Source:
    """Four coupled oscillations with noise; the target is the next value."""

    def batch(size: int) -> tuple[Tensor, Tensor]:
        time = torch.arange(25) * 0.3
        rate = 0.5 + torch.rand(size, 1, 4, generator=generator)
        phase = torch.rand(size, 1, 4, generator=generator) * 6.28
        wave = torch.sin(time[None, :, None] * rate + phase)
        wave = wave + 0.05 * torch.randn(wave.shape, generator=generator)
        return wave[:, :-1], wave[:, 1:]

    return batch


def _tokens_loss(logits: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())


KINDS = {
    "language": Kind(_language, _tokens_loss, _text),
    "images": Kind(_images, lambda logits, y: F.cross_entropy(logits.float(), y), _pictures),
    "series": Kind(_series, lambda value, y: F.mse_loss(value.float(), y), _waves),
}
