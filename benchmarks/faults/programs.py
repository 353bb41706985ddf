"""Small healthy training programs of many kinds, on which a monitor must be silent.

A program is a function that gets a source of random data and returns its training step; the step
gets its number, trains once, and returns the loss and the batch it was trained on.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from torch.optim import lr_scheduler

from torchstone.watch import Alert, Watch

Step = Callable[[int], tuple[Tensor, Tensor]]
Program = Callable[[Generator], Step]


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _two_layers(
    inputs: int, width: int, outputs: int, between: nn.Module | None = None
) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), between or nn.ReLU(), nn.Linear(width, outputs))


def _freeze(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.requires_grad_(False)


@torch.no_grad()
def _follow(average: nn.Module, model: nn.Module, share: float) -> None:
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, share)


def _grammar(words: int, data: Generator) -> Tensor:
    """How likely each word follows each: few pairs are frequent."""
    return torch.rand(words, words, generator=data) ** 8


def _text(grammar: Tensor, size: int, length: int, data: Generator) -> Tensor:
    """Sentences of a grammar, with one word more than their length, to be predicted."""
    words = [torch.randint(len(grammar), (size,), generator=data)]
    for _ in range(length):
        words.append(torch.multinomial(grammar[words[-1]], 1, generator=data)[:, 0])
    return torch.stack(words, 1)


# -- layers


class Experts(nn.Module):
    """Sixteen experts, of which each token goes to two."""

    def __init__(self, width: int, experts: int = 16) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            _two_layers(width, 2 * width, width, nn.GELU()) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        weights, chosen = self.gate(tokens).softmax(-1).topk(2)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, places = (chosen == number).nonzero(as_tuple=True)
            if len(rows):
                out = out.index_add(0, rows, expert(tokens[rows]) * weights[rows, places, None])
        return out.view_as(x)


class Adapted(nn.Module):
    """A frozen layer with a trained product of two thin matrices beside it."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(base.in_features, rank) * 0.02)
        self.up = nn.Parameter(torch.zeros(rank, base.out_features))
        _freeze(base)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.base(x) + x @ self.down @ self.up
        return y


class Recurrent(nn.Module):
    """A language model that can be handed the state in which it stopped."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, text: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        hidden, state = self.recurrent(self.embedding(text), state)
        assert state is not None
        return self.head(hidden), state


class Quantised(nn.Linear):
    """A linear layer with eight-bit weights; their gradient passes through the rounding."""

    def forward(self, x: Tensor) -> Tensor:
        unit = self.weight.detach().abs().max() / 127
        rounded = (self.weight / unit).round() * unit
        return F.linear(x, self.weight + (rounded - self.weight).detach(), self.bias)


class Noised(nn.Module):
    """Says which noise was added to a point, given how much of it there is."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = _two_layers(2 + 16, width, width)
        self.head = nn.Sequential(nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        angle = level[:, None] * 2.0 ** torch.arange(8)
        y: Tensor = self.head(self.layers(torch.cat([x, angle.sin(), angle.cos()], 1)))
        return y


class Lion(torch.optim.Optimizer):
    """Moves every weight by the learning rate, in the direction of a blend of two averages."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                average = self.state[parameter].setdefault("average", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                direction = average.lerp(parameter.grad, 0.1).sign_()
                parameter.add_(direction, alpha=-group["lr"])
                average.lerp_(parameter.grad, 0.01)


# -- architectures


def mixture_of_experts(data: Generator) -> Step:
    """A mixture of experts in which a batch of few tokens leaves experts without work."""
    grammar = _grammar(64, data)
    model = nn.Sequential(
        nn.Embedding(64, 32), Experts(32), nn.LayerNorm(32), nn.Linear(32, 64)
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randint(64, (2, 8), generator=data)
        y = torch.multinomial(grammar[x.flatten()], 1, generator=data)[:, 0]
        loss = F.cross_entropy(model(x).flatten(0, 1), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss, x

    return step


def low_rank_adapters(data: Generator) -> Step:
    """Three uses of one frozen layer, each with its own adapter that begins at zero."""
    base, truth = nn.Linear(32, 32), torch.randn(32, 32, generator=data) / 6
    model = nn.Sequential(Adapted(base), nn.ReLU(), Adapted(base), nn.ReLU(), Adapted(base))
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), 2e-3)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(16, 32, generator=data)
        loss = F.mse_loss(model(x), x @ truth)
        _descend(optimizer, loss)
        return loss, x

    return step


def frozen_backbone(data: Generator) -> Step:
    """A new head on a backbone that stays as it is, trained with Adagrad."""
    backbone = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU()).eval()
    _freeze(backbone)
    model = nn.Sequential(backbone, nn.Dropout(0.1), nn.Linear(64, 5))
    optimizer = torch.optim.Adagrad(model[2].parameters(), 0.05)
    truth = torch.randn(16, 5, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 16, generator=data)
        loss = F.cross_entropy(model(x), (x @ truth).argmax(1))
        _descend(optimizer, loss)
        return loss, x

    return step


def quantised_weights(data: Generator) -> Step:
    """Training that already sees its weights rounded to eight bits."""
    model = nn.Sequential(Quantised(16, 64), nn.ReLU(), Quantised(64, 64), nn.ReLU(),
                          Quantised(64, 4))  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    truth = torch.randn(16, 4, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 16, generator=data)
        y = (x @ truth + torch.randn(32, 4, generator=data)).argmax(1)
        loss = F.cross_entropy(model(x), y)
        _descend(optimizer, loss)
        return loss, x

    return step


def sparse_embedding(data: Generator) -> Step:
    """Bags of words, a few of them frequent, in a table with sparse gradients."""
    table, head = nn.EmbeddingBag(500, 16, sparse=True), nn.Linear(16, 3)
    model = nn.Sequential(table, head)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    frequency, meaning = 1 / torch.arange(1.0, 501), torch.randn(500, 3, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.multinomial(frequency.expand(32, -1), 8, generator=data)
        loss = F.cross_entropy(model(x), meaning[x].mean(1).argmax(1))
        _descend(optimizer, loss)
        return loss, x

    return step


# -- more than one network or loss


def wasserstein_gan(data: Generator) -> Step:
    """A critic with clipped weights, and a generator that waits for five of its steps."""
    generator, critic = _two_layers(8, 32, 2), _two_layers(2, 32, 1, nn.LeakyReLU(0.2))
    slow = torch.optim.RMSprop(generator.parameters(), 5e-5)
    fast = torch.optim.RMSprop(critic.parameters(), 5e-5)
    centre = torch.tensor([2.0, 1.0])

    def step(number: int) -> tuple[Tensor, Tensor]:
        real = torch.randn(32, 2, generator=data) * 0.5 + centre
        noise = torch.randn(32, 8, generator=data)
        loss = critic(generator(noise).detach()).mean() - critic(real).mean()
        _descend(fast, loss)
        with torch.no_grad():
            for parameter in critic.parameters():
                parameter.clamp_(-0.1, 0.1)
        if number % 5 == 0:
            _descend(slow, -critic(generator(noise)).mean())
        return loss, real

    return step


def gan(data: Generator) -> Step:
    """Two networks, each with an optimizer of its own, that work against each other."""
    generator, critic = _two_layers(8, 32, 2), _two_layers(2, 32, 1, nn.LeakyReLU(0.2))
    maker = torch.optim.Adam(generator.parameters(), 2e-4, (0.5, 0.999))
    judge = torch.optim.Adam(critic.parameters(), 2e-4, (0.5, 0.999))
    centre = torch.tensor([2.0, 1.0])

    def step(_: int) -> tuple[Tensor, Tensor]:
        real = torch.randn(32, 2, generator=data) * 0.5 + centre
        made = generator(torch.randn(32, 8, generator=data))
        judged = F.softplus(-critic(real)).mean() + F.softplus(critic(made.detach())).mean()
        _descend(judge, judged)
        fooled = F.softplus(-critic(made)).mean()
        _descend(maker, fooled)
        return judged + fooled, real

    return step


def annealed_vae(data: Generator) -> Step:
    """A variational autoencoder whose second loss grows for 600 steps."""
    encoder, decoder = _two_layers(16, 32, 8), _two_layers(4, 32, 16)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3)
    mixing = torch.randn(4, 16, generator=data)

    def step(number: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 4, generator=data) @ mixing
        mean, log_variance = encoder(x).chunk(2, -1)
        noise = torch.randn(mean.shape, generator=data)
        drawn = mean + noise * (log_variance / 2).exp()
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(-1).mean()
        loss = F.mse_loss(decoder(drawn), x) + 0.1 * min(1.0, number / 600) * divergence
        _descend(optimizer, loss)
        return loss, x

    return step


def bootstrapped_targets(data: Generator) -> Step:
    """Two views of a sample, one seen by a slow average of the network."""
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
    average, predictor = copy.deepcopy(model), nn.Linear(16, 16)
    _freeze(average)
    optimizer = torch.optim.AdamW([*model.parameters(), *predictor.parameters()], 1e-3)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(64, 16, generator=data)
        one, other = (x + 0.3 * torch.randn(x.shape, generator=data) for _ in range(2))
        loss = 2 - 2 * F.cosine_similarity(predictor(model(one)), average(other)).mean()
        _descend(optimizer, loss)
        _follow(average, model, 0.01)
        return loss, x

    return step


def alternating_tasks(data: Generator) -> Step:
    """One trunk with two heads that have every other batch each."""
    trunk = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
    model = nn.ModuleDict({"trunk": trunk, "value": nn.Linear(32, 1), "kind": nn.Linear(32, 4)})
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    value, kind = torch.randn(16, 1, generator=data), torch.randn(16, 4, generator=data)

    def step(number: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 16, generator=data)
        hidden = model["trunk"](x)
        if number % 2:
            loss = F.mse_loss(model["value"](hidden), x @ value)
        else:
            loss = F.cross_entropy(model["kind"](hidden), (x @ kind).argmax(1))
        _descend(optimizer, loss)
        return loss, x

    return step


def distillation(data: Generator) -> Step:
    """A small student of a frozen teacher and of the labels, trained with Adafactor."""
    teacher, student = _two_layers(16, 128, 6), _two_layers(16, 32, 6)
    _freeze(teacher)
    optimizer = torch.optim.Adafactor(student.parameters(), 1e-2)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 16, generator=data)
        told, said = 8 * teacher(x), student(x)  # an untrained teacher is sure of nothing
        label = torch.multinomial(told.softmax(-1), 1, generator=data)[:, 0]
        soft = F.kl_div((said / 2).log_softmax(-1), (told / 2).softmax(-1), reduction="batchmean")
        loss = 0.7 * 4 * soft + 0.3 * F.cross_entropy(said, label)
        _descend(optimizer, loss)
        return loss, x

    return step


# -- objectives


def policy_gradient(data: Generator) -> Step:
    """A policy that learns from noisy rewards; its loss says nothing of its progress."""
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    truth = torch.randn(4, 3, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(64, 4, generator=data)
        chances = model(x).softmax(-1)
        action = torch.multinomial(chances.detach(), 1, generator=data)
        reward = (x @ truth).gather(1, action)[:, 0] + torch.randn(64, generator=data)
        loss = -(chances.gather(1, action)[:, 0].log() * (reward - reward.mean())).mean()
        _descend(optimizer, loss)
        return loss, x

    return step


def diffusion_denoiser(data: Generator) -> Step:
    """A denoiser of points on a ring, with another amount of noise for every sample."""
    model = Noised()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(_: int) -> tuple[Tensor, Tensor]:
        angle, level = 6.2832 * torch.rand(64, generator=data), torch.rand(64, generator=data)
        noise = torch.randn(64, 2, generator=data)
        kept = (level * torch.pi / 2).cos()[:, None]
        x = kept * torch.stack([angle.cos(), angle.sin()], 1) + (1 - kept**2).sqrt() * noise
        loss = F.mse_loss(model(x, level), noise)
        _descend(optimizer, loss)
        return loss, x

    return step


def contrastive_pairs(data: Generator) -> Step:
    """Two encoders that find each other's partner in the batch, with a learned temperature."""
    model = nn.ModuleDict({"picture": _two_layers(24, 64, 16), "caption": _two_layers(12, 64, 16)})
    sharpness = nn.Parameter(torch.tensor(2.66))
    optimizer = torch.optim.AdamW([*model.parameters(), sharpness], 1e-3)
    seen, told = torch.randn(8, 24, generator=data), torch.randn(8, 12, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        subject = torch.randn(32, 8, generator=data)
        x = subject @ seen + 0.3 * torch.randn(32, 24, generator=data)
        y = subject @ told + 0.3 * torch.randn(32, 12, generator=data)
        one, other = F.normalize(model["picture"](x)), F.normalize(model["caption"](y))
        alike = one @ other.T * sharpness.exp().clamp(max=100)
        partner = torch.arange(32)
        loss = (F.cross_entropy(alike, partner) + F.cross_entropy(alike.T, partner)) / 2
        _descend(optimizer, loss)
        return loss, x

    return step


def reward_model(data: Generator) -> Step:
    """Scores learned from which of two answers was preferred, trained with RAdam."""
    model = _two_layers(16, 64, 1)
    optimizer = torch.optim.RAdam(model.parameters(), 2e-3)
    taste = torch.randn(16, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        pair = torch.randn(32, 2, 16, generator=data)
        liked = (pair @ taste).softmax(-1)
        first = torch.multinomial(liked, 1, generator=data)
        score = model(pair)[..., 0]
        loss = -F.logsigmoid(score.gather(1, first) - score.gather(1, 1 - first)).mean()
        _descend(optimizer, loss)
        return loss, pair

    return step


def mixed_labels(data: Generator) -> Step:
    """Mixed samples and smoothed labels from the first step on, trained with Lion."""
    model = nn.Sequential(nn.Linear(16, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 5))
    optimizer = Lion(model.parameters(), 3e-4, weight_decay=0.01)
    truth = torch.randn(16, 5, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 16, generator=data)
        y = F.one_hot((x @ truth).argmax(1), 5).float()
        share = torch.rand(1, generator=data)
        mixed = share * x + (1 - share) * x.flip(0)
        loss = F.cross_entropy(
            model(mixed), share * y + (1 - share) * y.flip(0), label_smoothing=0.1
        )
        _descend(optimizer, loss)
        return loss, mixed

    return step


# -- schedules


def one_cycle_with_scaler(data: Generator) -> Step:
    """One cycle of the learning rate, with a loss scaler whose scale keeps growing."""
    model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=1600)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=200)
    truth = torch.randn(16, 4, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(32, 16, generator=data)
        y = (x @ truth + torch.randn(32, 4, generator=data)).argmax(1)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        return loss, x

    return step


def step_schedule(data: Generator) -> Step:
    """A convolutional network whose learning rate falls to a tenth, twice."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    schedule = lr_scheduler.MultiStepLR(optimizer, [500, 1000], 0.1)

    def step(_: int) -> tuple[Tensor, Tensor]:
        y = torch.randint(4, (16,), generator=data)
        x = torch.randn(16, 3, 8, 8, generator=data)
        x[torch.arange(16), y % 3] += (y[:, None, None] + 1) * 0.4
        loss = F.cross_entropy(model(x), y)
        _descend(optimizer, loss)
        schedule.step()
        return loss, x

    return step


def warm_restarts(data: Generator) -> Step:
    """A regression whose learning rate jumps back to its start every 300 steps."""
    model = nn.Sequential(
        nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 300)
    truth = torch.randn(16, 1, generator=data) / 4

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(64, 16, generator=data)
        y = torch.sin(x @ truth) + 0.1 * torch.randn(64, 1, generator=data)
        loss = F.mse_loss(model(x), y)
        _descend(optimizer, loss)
        schedule.step()
        return loss, x

    return step


def accumulated_gradients(data: Generator) -> Step:
    """Four batches for every move of the optimizer, with a warm-up and a cosine."""
    grammar, model = _grammar(32, data), Recurrent(32, 32)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    warm = lr_scheduler.LinearLR(optimizer, 0.05, total_iters=40)
    fall = lr_scheduler.CosineAnnealingLR(optimizer, 340)
    schedule = lr_scheduler.SequentialLR(optimizer, [warm, fall], [40])

    def step(number: int) -> tuple[Tensor, Tensor]:
        text = _text(grammar, 8, 8, data)
        loss = F.cross_entropy(model(text[:, :-1])[0].flatten(0, 1), text[:, 1:].flatten())
        (loss / 4).backward()
        if number % 4 == 3:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        return loss, text

    return step


# -- data


def batch_of_one(data: Generator) -> Step:
    """One sample in a batch, so that every number is mostly noise."""
    model = _two_layers(10, 32, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    truth = torch.randn(10, 5, generator=data)

    def step(_: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(1, 10, generator=data)
        loss = F.cross_entropy(model(x), (x @ truth).argmax(1))
        _descend(optimizer, loss)
        return loss, x

    return step


def growing_lengths(data: Generator) -> Step:
    """Sentences that are twice as long after 500 steps, and again after 1000."""
    grammar, model = _grammar(32, data), Recurrent(32, 32)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)

    def step(number: int) -> tuple[Tensor, Tensor]:
        text = _text(grammar, 16, 8 * 2 ** min(number // 500, 2), data)
        loss = F.cross_entropy(model(text[:, :-1])[0].flatten(0, 1), text[:, 1:].flatten())
        _descend(optimizer, loss)
        return loss, text

    return step


def truncated_backpropagation(data: Generator) -> Step:
    """One endless text in pieces, of which each begins in the state the last one left."""
    grammar, model = _grammar(32, data), Recurrent(32, 32)
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    last, state = torch.randint(32, (16,), generator=data), torch.zeros(1, 16, 32)

    def step(_: int) -> tuple[Tensor, Tensor]:
        nonlocal last, state
        words = [last]
        for _ in range(10):
            words.append(torch.multinomial(grammar[words[-1]], 1, generator=data)[:, 0])
        last, text = words[-1], torch.stack(words, 1)
        said, state = model(text[:, :-1], state.detach())
        loss = F.cross_entropy(said.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss, text

    return step


def epochs_over_small_data(data: Generator) -> Step:
    """Many shuffled epochs over 400 samples, with a short last batch and a look in between."""
    x = torch.randn(400, 20, generator=data)
    truth, noise = torch.randn(20, 3, generator=data), torch.randn(400, 3, generator=data)
    y = (x @ truth + noise).argmax(1)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def epochs() -> Iterator[Tensor]:
        while True:
            yield from torch.randperm(400, generator=data).split(32)
            model.eval()
            model(x[:50])  # that it keeps a graph is wasteful, not wrong
            model.train()

    batches = epochs()

    def step(_: int) -> tuple[Tensor, Tensor]:
        chosen = next(batches)
        loss = F.cross_entropy(model(x[chosen]), y[chosen])
        _descend(optimizer, loss)
        return loss, x[chosen]

    return step


def unshuffled_short_epochs(data: Generator) -> Step:
    """Ten batches in the same order again and again, until they are known by heart."""
    x = torch.randn(10, 16, 20, generator=data)
    y = torch.randint(3, (10, 16), generator=data)
    model = _two_layers(20, 64, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step(number: int) -> tuple[Tensor, Tensor]:
        place = number % 10
        loss = F.cross_entropy(model(x[place]), y[place])
        _descend(optimizer, loss)
        return loss, x[place]

    return step


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        mixture_of_experts, low_rank_adapters, frozen_backbone, quantised_weights,
        sparse_embedding, wasserstein_gan, gan, annealed_vae, bootstrapped_targets,
        alternating_tasks, distillation, policy_gradient, diffusion_denoiser, contrastive_pairs,
        reward_model, mixed_labels, one_cycle_with_scaler, step_schedule, warm_restarts,
        accumulated_gradients, batch_of_one, growing_lengths, truncated_backpropagation,
        epochs_over_small_data, unshuffled_short_epochs,
    )
}  # fmt: skip


# -- watching them


def alerts(name: str, seed: int, steps: int) -> list[Alert]:
    """What a watch tells of a program; all of it is false."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    step = PROGRAMS[name](torch.Generator().manual_seed(seed + 99))
    # the budget is about time, and time would make the answer a matter of luck
    monitor = Watch(folder=False, print_every=10**9, budget=10)
    with contextlib.redirect_stderr(io.StringIO()):
        for number in range(steps):
            monitor.prepare(step, (number,), {})
            monitor.begin()
            loss, batch = step(number)
            monitor.end(loss, batch)
        monitor.close()
    if monitor.steps < steps:  # or the silence of a broken watch would pass for a good one
        raise RuntimeError(f"{name}: the watch ended itself at step {monitor.steps} of {steps}")
    return monitor.alerts


def alarms(name: str, seed: int, steps: int) -> list[str]:
    """The alert lines of a watch on a program; a healthy program deserves none."""
    return [alert.line() for alert in alerts(name, seed, steps)]
