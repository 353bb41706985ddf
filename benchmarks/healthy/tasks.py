"""Small models with data that they learn: some to a noise floor, some almost perfectly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

Source = Callable[[Generator], Callable[[int], tuple[Tensor, Tensor]]]


@dataclass(frozen=True)
class Task:
    """A model, its loss and a source of batches."""

    model: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    source: Source
    batch_size: int = 32


def _mlp(inputs: int, outputs: int, width: int = 64) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, outputs),
    )  # fmt: skip


def _normalised_mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 8),
    )  # fmt: skip


def _autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Linear(32, 24), nn.Tanh(), nn.Linear(24, 6), nn.Linear(6, 24), nn.Tanh(),
        nn.Linear(24, 32),
    )  # fmt: skip


def _conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 6),
    )  # fmt: skip


def _plain_conv() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(400, 6),
    )  # fmt: skip


class Transformer(nn.Module):
    """A causal transformer of one or two blocks; the output shares the embedding's weights."""

    def __init__(self, words: int = 24, width: int = 32, blocks: int = 1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.position = nn.Parameter(torch.randn(12, width) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return F.linear(self.norm(x), self.embedding.weight)


class Recurrent(nn.Module):
    """Says the next value of a series."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(2, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.recurrent(x)[0])
        return y


def _classes(noise: float) -> Source:
    """Eight clusters; with enough noise no model separates them."""

    def source(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
        centres = torch.randn(8, 32, generator=data)

        def batch(size: int) -> tuple[Tensor, Tensor]:
            label = torch.randint(8, (size,), generator=data)
            return centres[label] + noise * torch.randn(size, 32, generator=data), label

        return batch

    return source


def _small_set(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Three hundred samples again and again, in a new order: the model learns them by heart."""
    x, y = torch.randn(300, 32, generator=data), torch.randint(8, (300,), generator=data)
    queue: list[Tensor] = []

    def batch(size: int) -> tuple[Tensor, Tensor]:
        if not queue:
            queue.extend(torch.randperm(300, generator=data).split(size))
        chosen = queue.pop(0)
        return x[chosen], y[chosen]

    return batch


def _function(noise: float) -> Source:
    """A smooth function of eight numbers."""

    def source(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
        inner, outer = torch.randn(8, 16, generator=data) / 3, torch.randn(16, 4, generator=data)

        def batch(size: int) -> tuple[Tensor, Tensor]:
            x = torch.randn(size, 8, generator=data)
            return x, torch.tanh(x @ inner) @ outer + noise * torch.randn(size, 4, generator=data)

        return batch

    return source


def _linear(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
    """A linear rule without noise, which a linear model learns to the last digit."""
    rule = torch.randn(16, 3, generator=data)

    def batch(size: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(size, 16, generator=data)
        return x, x @ rule

    return batch


def _codes(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Points of a plane of six dimensions, to be given back."""
    plane = torch.randn(6, 32, generator=data) / 2.5

    def batch(size: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(size, 6, generator=data) @ plane
        return x, x

    return batch


def _pictures(noise: float) -> Source:
    """Gratings of six angles."""

    def source(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
        grid = torch.linspace(-1, 1, 10)
        yy, xx = torch.meshgrid(grid, grid, indexing="ij")

        def batch(size: int) -> tuple[Tensor, Tensor]:
            label = torch.randint(6, (size,), generator=data)
            angle = (label * torch.pi / 6)[:, None, None]
            phase = 6.28 * torch.rand(size, 1, 1, generator=data)
            wave = torch.sin(7 * (xx * angle.cos() + yy * angle.sin()) + phase)
            return (wave + noise * torch.randn(size, 10, 10, generator=data))[:, None], label

        return batch

    return source


def _text(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Sentences in which few pairs of words are frequent."""
    table = torch.rand(24, 24, generator=data) ** 6

    def batch(size: int) -> tuple[Tensor, Tensor]:
        words = [torch.randint(24, (size,), generator=data)]
        for _ in range(12):
            words.append(torch.multinomial(table[words[-1]], 1, generator=data)[:, 0])
        text = torch.stack(words, 1)
        return text[:, :-1], text[:, 1:]

    return batch


def _copies(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Six words, then the same six: the second half can be known, and is learned late."""

    def batch(size: int) -> tuple[Tensor, Tensor]:
        half = torch.randint(24, (size, 6), generator=data)
        text = torch.cat([half, half], 1)
        return text, text.roll(-1, 1)

    return batch


def _waves(data: Generator) -> Callable[[int], tuple[Tensor, Tensor]]:
    def batch(size: int) -> tuple[Tensor, Tensor]:
        time = torch.arange(17)[None, :, None] * (
            0.2 + 0.4 * torch.rand(size, 1, 2, generator=data)
        )
        wave = torch.sin(time + 6.28 * torch.rand(size, 1, 2, generator=data))
        return wave[:, :-1], wave[:, 1:]

    return batch


def _next_word(logits: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


TASKS = {
    "noisy classes": Task(lambda: _mlp(32, 8), F.cross_entropy, _classes(3.0)),
    "clean classes": Task(lambda: _mlp(32, 8), F.cross_entropy, _classes(0.8)),
    "normalised": Task(_normalised_mlp, F.cross_entropy, _classes(2.0), 64),
    "small set": Task(lambda: _mlp(32, 8), F.cross_entropy, _small_set),
    "function": Task(lambda: _mlp(8, 4), F.mse_loss, _function(0.0)),
    "noisy function": Task(lambda: _mlp(8, 4), F.mse_loss, _function(0.5)),
    "linear": Task(lambda: nn.Linear(16, 3), F.mse_loss, _linear),
    "autoencoder": Task(_autoencoder, F.mse_loss, _codes),
    "pictures": Task(_conv, F.cross_entropy, _pictures(1.0)),
    "clean pictures": Task(_plain_conv, F.cross_entropy, _pictures(0.2)),
    "text": Task(Transformer, _next_word, _text, 16),
    "copies": Task(lambda: Transformer(blocks=2), _next_word, _copies, 16),
    "waves": Task(Recurrent, F.mse_loss, _waves, 16),
}
