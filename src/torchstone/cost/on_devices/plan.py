"""How a model is spread over devices: degrees, ZeRO stage, checkpointing, optimizer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from torchstone.core.errors import UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.cost.arguments import choice, whole

NONE, SELECTIVE, FULL = "none", "selective", "full"
CHECKPOINTS = (NONE, SELECTIVE, FULL)
"""`selective`: what attention itself keeps is computed again; `full`: all of a block but its
input is."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """What an optimizer keeps for each trainable parameter."""

    bytes_per_parameter: Fraction
    text: Text


MEASURED = "measured"
OPTIMIZERS = {
    MEASURED: Optimizer(
        Fraction(8),
        Text(
            "as measured; two float32 moments where no step was measured",
            "按实测；没有实测优化器步时按两份 float32 矩",
        ),
    ),
    "sgd": Optimizer(Fraction(0), Text("no state", "无状态")),
    "sgd-momentum": Optimizer(Fraction(4), Text("one float32 momentum", "一份 float32 动量")),
    "adamw": Optimizer(Fraction(8), Text("two float32 moments", "两份 float32 矩")),
    "adamw-mixed": Optimizer(
        Fraction(12),
        Text("two float32 moments and a float32 master copy", "两份 float32 矩与 float32 主权重"),
    ),
    "adamw-8bit": Optimizer(
        Fraction(2) + Fraction(2 * 4, 256),
        Text(
            "two 8-bit moments, a float32 scale for every 256 of each",
            "两份 8 位矩，每 256 个数一个 float32 缩放",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Data x tensor x pipeline devices; experts are spread inside the data dimension."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    zero: int = 0
    """ZeRO stage: 1 shards the optimizer, 2 gradients too, 3 parameters too (FSDP)."""
    checkpoint: str = NONE
    sequence_parallel: bool = True
    """With tensor parallelism: norms and residuals are split along the sequence as well."""
    micro_batch: int | None = None
    """Samples of one pass on one replica; None for as many as were measured."""
    micro_batches: int = 1
    """Passes of one replica in one step: gradient accumulation, and what fills the pipeline."""
    optimizer: str = MEASURED
    gradient_itemsize: int | None = None
    """Bytes of a number in the gradients; None for that of the parameters."""

    @property
    def world(self) -> int:
        return self.data * self.tensor * self.pipeline

    @property
    def expert_data(self) -> int:
        """Devices that hold the same experts."""
        return self.data // self.expert

    def check(self, world: int | None = None) -> None:
        """Raise a UsageError for degrees that cannot be."""
        for name in ("data", "tensor", "pipeline", "expert", "micro_batches"):
            whole(f"plan {name}", getattr(self, name))
        whole("plan zero", self.zero, least=0)
        if self.zero > 3:
            raise _wrong("zero", str(self.zero), "a stage from 0 to 3", "0 到 3 之间的阶段")
        for name in ("micro_batch", "gradient_itemsize"):
            if getattr(self, name) is not None:
                whole(f"plan {name}", getattr(self, name))
        choice("plan checkpoint", self.checkpoint, CHECKPOINTS)
        choice("plan optimizer", self.optimizer, tuple(OPTIMIZERS))
        if self.data % self.expert:
            raise _wrong(
                "expert",
                f"{self.expert} with data {self.data}",
                "a divisor of the data degree",
                "数据并行度的约数",
            )
        if world is not None and whole("world", world) != self.world:
            product = f"{self.data} x {self.tensor} x {self.pipeline} = {self.world}"
            raise _wrong(
                "world",
                product,
                f"data x tensor x pipeline = {world} devices",
                f"数据 x 张量 x 流水线 = {world} 个设备",
            )


def _wrong(name: str, given: str, en: str, zh: str) -> UsageError:
    todo = Text("change the degrees of the plan", "请调整方案的并行度")
    return UsageError(f"plan {name}", given, Text(en, zh), todo)


def shares(total: int, parts: int) -> tuple[int, ...]:
    """A whole number split as evenly as can be; the parts add up to it and the first is largest."""
    small, more = divmod(total, parts)
    return tuple(small + (index < more) for index in range(parts))


def share(total: int, parts: int) -> int:
    """The largest of the even shares."""
    return -(-total // parts)


def plan_from(text: str) -> Plan:
    """A plan from words: `data=8,zero=3,tensor=2,checkpoint=full`."""
    given: dict[str, Any] = {}
    known = {item.name for item in fields(Plan)}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        name = name.replace("-", "_")
        if not equals or name not in known:
            raise unknown("cost: --plan", part.strip(), sorted(known))
        if name in ("checkpoint", "optimizer"):
            given[name] = value
        elif name == "sequence_parallel":
            given[name] = value.lower() in ("1", "true", "yes")
        elif value.isdigit():
            given[name] = int(value)
        else:
            raise _wrong(name, repr(value), "a whole number", "整数")
    plan = Plan(**given)
    plan.check()
    return plan
