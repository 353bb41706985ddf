"""Seeded precision faults in three architectures, and healthy networks; lines to be named are marked.

Two sets were scored before anything was changed for them: `…Aside` (36 of 42 named; the threshold was then halved) and
`…Unseen` (39 of 42; each kind of error is since asked whether a repair cures it). Both have been looked at now: their
scores of today are no blind ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

# -- faults: modules that take and give (batch, tokens, width)


def rising(x: torch.Tensor) -> torch.Tensor:
    """A factor that grows along the tokens: rows that were just normalised differ again."""
    return torch.linspace(0.6, 1.7, x.shape[1]).to(x.dtype).unsqueeze(-1)


class NaiveVariance(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * rising(x) + 8.3
        mean = x.mean(-1, keepdim=True)
        var = (x * x).mean(-1, keepdim=True) - mean * mean  # bad
        return (x - mean) * torch.rsqrt(var.clamp(min=0.05))


class NaiveVarianceOverTokens(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * rising(x) + 11.7
        second = y.pow(2).mean(1, keepdim=True)
        first = y.mean(1, keepdim=True)
        spread = second - first.pow(2)  # bad
        return x / (spread.abs() + 0.3).sqrt()


class NaiveVarianceAside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shifted = x * rising(x) - 14.4
        moments = torch.stack([shifted.mean(-1), shifted.square().mean(-1)])
        var = moments[1] - moments[0].square()  # bad
        return x * self.scale * (var.relu() + 0.2).rsqrt().unsqueeze(-1)


class SoftmaxWithoutMax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x @ x.transpose(-1, -2) * 2
        weights = torch.exp(scores)  # bad
        return (weights / weights.sum(-1, keepdim=True)) @ x


class SoftmaxWithoutMaxOverWidth(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        powers = (x * 9).exp()  # bad
        return x + powers / (powers.sum(-1, keepdim=True) + 1.0)


class SoftmaxAside(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = 14 * x / (1 + x.abs()) + 3
        gate = torch.exp(logits)  # bad
        total = gate.sum(dim=1, keepdim=True)
        return x * gate / total


class LongSum(nn.Module):
    """100,000 values added to an accumulator of the low type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces = (x.flatten().repeat(100_000 // x.numel() + 1)[:100_000] * 0.1 + 0.3).view(500, 200)
        total = torch.zeros((), dtype=x.dtype)
        for piece in pieces.mean(1):
            total = total + piece  # bad
        return x + total / 150


class LongSumInPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(x.shape[-1])
        rows = (x.reshape(-1, x.shape[-1]) * 0.05 + 0.2).repeat(
            100_000 // x[..., 0].numel() // 64, 1
        )
        for row in rows:
            total += row  # bad
        return x + total / rows.shape[0]


class LongSumAside(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = (x.flatten().repeat(100_000 // x.numel() + 1)[:100_000].abs() + 0.5).view(250, 400)
        means = values.mean(dim=1)
        running = means[0] * 0
        for step in range(means.shape[0]):
            running = running.add(means[step])  # bad
        return x * running / means.shape[0]


class Cancellation(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        large = x * 0.1 + 300
        return (large - 300) * 10  # bad


class CancellationOfRoots(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.abs() + 20
        difference = torch.sqrt(y * y + 1) - y  # bad
        return x * difference * 40


class CancellationAside(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = x * 0.01
        near_zero = torch.exp(small) - 1  # bad
        return near_zero * 100


class SmallEps(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dead = torch.where(torch.arange(x.shape[-1]) < x.shape[-1] // 2, x, torch.zeros_like(x))
        size = dead.abs().amax(1, keepdim=True) + 1e-9  # bad
        return x + dead / size


class SmallEpsUnderRoot(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        blank = torch.where(torch.arange(x.shape[1]).unsqueeze(-1) < 3, torch.zeros_like(x), x)
        power = blank.pow(2).mean(-1, keepdim=True)
        shifted = power + 1e-9  # bad
        return x * 0.5 + blank / torch.sqrt(shifted)


class SmallEpsAside(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = F.relu(x - 100)
        norm = gate.sum(-1, keepdim=True)
        safe = norm + 1e-10  # bad
        return x + gate * safe.reciprocal()


class RunningMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((1,), 5.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.copy_(self.mean * 0.9995 + x.detach().mean() * 0.0005)  # bad
        return x - self.mean * 0.01


class RunningScale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((32,), 3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        now = x.detach().abs().mean(dim=(0, 1))
        self.scale.lerp_(now, 0.0003)  # bad
        return x * 3 / self.scale


class RunningAside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("moment", torch.full((32,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        square = x.detach().square().mean(dim=(0, 1))
        self.moment.add_((square - self.moment) * 0.0004)  # bad
        return x / self.moment.sqrt()


class SquareOverflow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 200
        square = y * y  # bad
        return y / (square.mean(-1, keepdim=True) + 1).sqrt()


class NormOverflow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 60
        length = y.pow(2).sum(-1, keepdim=True)  # bad
        return y / torch.sqrt(length + 1)


class SquareOverflowAside(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        energy = torch.einsum("btd,btd->bt", x * 90, x * 90)  # bad
        return x / (1 + energy.sqrt().unsqueeze(-1) / 90)


# -- the set that was written last


class VarianceUnseen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * rising(x) * 0.5 + 6
        n = y.shape[-1]
        var = (y.pow(2).sum(-1) - y.sum(-1).pow(2) / n) / n  # bad
        return x / (var.abs() + 0.1).sqrt().unsqueeze(-1)


class SoftmaxUnseen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        energy = torch.einsum("bid,bjd->bij", x, x)
        weights = energy.exp()  # bad
        return torch.bmm(weights / weights.sum(2, keepdim=True), x)


class LongSumUnseen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = (x.flatten().repeat(100_000 // x.numel() + 1)[:100_000] * 0.2 + 0.7).view(
            1000, 100
        )
        count = x.new_zeros(4)
        for part in values.mean(1).view(-1, 4):
            count = part + count  # bad
        return x + (count / 250).repeat(x.shape[-1] // 4)


class CancellationUnseen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angle = x.tanh() * 0.2
        curved = 1 - torch.cos(angle)  # bad
        return x + curved * 60


class SmallEpsUnseen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hard = x * (x > 3.5)
        length = hard.square().sum(-1, keepdim=True).sqrt()
        bottom = length + 1e-12  # bad
        return x + hard / bottom


class RunningUnseen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.full((32,), -4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.average.mul_(0.9998).add_(x.mean((0, 1)), alpha=0.0002)  # bad
        return x - self.average / 8


class OverflowUnseen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = 50 * x
        gram = wide @ wide.transpose(1, 2)  # bad
        return x + torch.tanh(gram.mean(-1, keepdim=True) / 1e4)


# -- architectures: (batch, tokens, width 32) inside


class Block(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, fault: nn.Module | None = None) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 32)
        self.before, self.after = nn.ModuleList([Block(), Block()]), nn.ModuleList([Block()])
        self.norm = nn.LayerNorm(32)
        self.fault = fault
        self.head = nn.Linear(32, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.before:
            x = block(x)
        x = self.norm(x)
        if self.fault is not None:
            x = self.fault(x)
        for block in self.after:
            x = block(x)
        return self.head(x)


class ConvNet(nn.Module):
    def __init__(self, fault: nn.Module | None = None) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(inplace=True)
        )
        self.fault = fault
        self.last = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.SiLU())
        self.head = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        x = F.max_pool2d(x + self.body(x), 2)
        x = F.layer_norm(x, x.shape[1:])
        if self.fault is not None:
            tokens = self.fault(x.flatten(2).transpose(1, 2))
            x = tokens.transpose(1, 2).reshape(x.shape)
        return self.head(self.last(x).mean(dim=(2, 3)))


class Recurrent(nn.Module):
    def __init__(self, fault: nn.Module | None = None) -> None:
        super().__init__()
        self.into = nn.Linear(8, 32)
        self.cell = nn.GRU(32, 32, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.fault = fault
        self.head = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        x, _ = self.cell(self.into(series))
        x = self.norm(x)
        if self.fault is not None:
            x = self.fault(x)
        return self.head(x)


ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "transformer": Transformer,
    "convnet": ConvNet,
    "recurrent": Recurrent,
}


def batch_for(architecture: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 + seed)
    if architecture == "transformer":
        return torch.randint(0, 64, (4, 16), generator=generator)
    if architecture == "convnet":
        return torch.randn(4, 3, 8, 8, generator=generator)
    return torch.randn(4, 12, 8, generator=generator)


# -- the suite


@dataclass(frozen=True)
class Case:
    name: str
    fault: Callable[[], nn.Module]
    architecture: str
    low: torch.dtype
    aside: bool = False

    def build(self, seed: int) -> tuple[nn.Module, torch.Tensor]:
        torch.manual_seed(seed)
        return ARCHITECTURES[self.architecture](self.fault()), batch_for(self.architecture, seed)

    def lines(self) -> set[int]:
        """The marked lines of the fault."""
        source, first = inspect.getsourcelines(self.fault)
        return {first + i for i, line in enumerate(source) if line.rstrip().endswith("# bad")}


HALF, BRAIN = torch.float16, torch.bfloat16
_FAULTS: list[tuple[str, torch.dtype, tuple[type[nn.Module], ...]]] = [
    (
        "naive variance",
        BRAIN,
        (NaiveVariance, NaiveVarianceOverTokens, NaiveVarianceAside, VarianceUnseen),
    ),
    (
        "softmax without max",
        HALF,
        (SoftmaxWithoutMax, SoftmaxWithoutMaxOverWidth, SoftmaxAside, SoftmaxUnseen),
    ),
    ("long half sum", BRAIN, (LongSum, LongSumInPlace, LongSumAside, LongSumUnseen)),
    (
        "cancellation",
        BRAIN,
        (Cancellation, CancellationOfRoots, CancellationAside, CancellationUnseen),
    ),
    ("small eps", HALF, (SmallEps, SmallEpsUnderRoot, SmallEpsAside, SmallEpsUnseen)),
    ("running statistics", BRAIN, (RunningMean, RunningScale, RunningAside, RunningUnseen)),
    (
        "overflow of squares",
        HALF,
        (SquareOverflow, NormOverflow, SquareOverflowAside, OverflowUnseen),
    ),
]
CASES = [
    Case(
        f"{name}/{fault.__name__}/{architecture}",
        fault,
        architecture,
        low,
        fault.__name__.endswith("Unseen"),
    )
    for name, low, faults in _FAULTS
    for fault in faults
    for architecture in ARCHITECTURES
]


# -- healthy networks: nothing in them is to be blamed


class RMSNormMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into, self.gate, self.up = nn.Linear(24, 48), nn.Linear(48, 96), nn.Linear(48, 96)
        self.norm, self.down, self.head = nn.RMSNorm(48), nn.Linear(96, 48), nn.Linear(48, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.into(x)
        h = self.norm(x)
        return self.head(x + self.down(F.silu(self.gate(h)) * self.up(h)))


class MaskedAttention(nn.Module):
    """A legal mask of minus infinity, dropout, and a softmax that subtracts its maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))
        self.out, self.drop = nn.Linear(32, 8), nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.q(x) @ self.k(x).transpose(-1, -2) / 32**0.5
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        return self.out(self.drop(weights) @ self.v(x))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.LeakyReLU(0.2)
        )
        self.b = nn.Sequential(nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.2))
        self.c = nn.ConvTranspose2d(32, 16, 2, 2)
        self.d = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        return torch.tanh(self.d(torch.cat([self.c(self.b(a)), a], 1)))


class Residual(nn.Module):
    def __init__(self, depth: int = 12) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.relu(layer(norm(x)))
        return x


class Experts(nn.Module):
    """Routing that the data decide."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(32, 4)
        self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, 32)
        weight, choice = self.gate(flat).softmax(-1).max(-1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            chosen = (choice == number).nonzero().squeeze(-1)
            if chosen.numel():
                out = out.index_add(0, chosen, expert(flat[chosen]) * weight[chosen].unsqueeze(-1))
        return out.view_as(x)


def classifier_with_loss(inner: nn.Module) -> nn.Module:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logits = self.inner(x)
            target = torch.arange(logits.shape[0]) % logits.shape[-1]
            return F.cross_entropy(logits, target)

    return WithLoss()


def _tokens(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2000 + seed))


HEALTHY: dict[str, Callable[[int], tuple[nn.Module, torch.Tensor]]] = {
    **{
        name: lambda seed, name=name: (ARCHITECTURES[name](), batch_for(name, seed))  # type: ignore[misc]
        for name in ARCHITECTURES
    },
    "rms norm mlp": lambda seed: (RMSNormMLP(), _tokens(seed, 8, 24)),
    "masked attention": lambda seed: (MaskedAttention(), _tokens(seed, 4, 10, 32)),
    "u-net": lambda seed: (UNet(), _tokens(seed, 4, 3, 8, 8)),
    "residual": lambda seed: (Residual(), _tokens(seed, 8, 32)),
    "experts": lambda seed: (Experts(), _tokens(seed, 4, 8, 32)),
    "encoder": lambda seed: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2),
        _tokens(seed, 4, 10, 32),
    ),
    "lstm": lambda seed: (_LastOf(nn.LSTM(8, 24, 2, batch_first=True)), _tokens(seed, 4, 10, 8)),
    "conv with loss": lambda seed: (classifier_with_loss(ConvNet()), batch_for("convnet", seed)),
    "mlp with loss": lambda seed: (classifier_with_loss(RMSNormMLP()), _tokens(seed, 8, 24)),
}


class _LastOf(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]
