"""The first screen of a tensor's page."""

from __future__ import annotations

from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.evidence import State
from torchstone.core.pictures import Evidence
from torchstone.core.text import Text
from torchstone.tensors.analysis.result import TensorReport
from torchstone.tensors.analysis.risk import RISK_NAMES, Risk, times

_STATES: dict[str, State] = {"HIGH": "bad", "MEDIUM": "warning", "LOW": "good"}


def tensor_answer(
    found: TensorReport, risks: list[Risk], pictures: tuple[Evidence, ...], topics: tuple[str, ...]
) -> Answer:
    """Is the tensor safe in 16 bits and fewer, what is lost, and what helps."""
    worst = min(risks, key=lambda risk: risk.severity.rank, default=None)
    safe = Text(f"`{found.name}` is safe in 16 bits", f"`{found.name}` 在 16 位下是安全的")
    return Answer(
        headline=worst.what if worst else safe,
        state=_STATES[found.risk_level],
        about=(
            Fact(Text("tensor", "张量"), found.name),
            Fact(Text("shape", "形状"), " × ".join(map(str, found.shape)) or "()"),
            Fact(Text("type", "类型"), found.dtype),
        ),
        tiles=tuple(_tiles(found)),
        lines=(found.suggestions, *(risk.what for risk in risks if risk is not worst)),
        pictures=pictures,
        next=tuple(f"torchstone explain {topic}" for topic in topics),
    )


def _tiles(found: TensorReport) -> list[Tile]:
    tiles = [
        Tile(Text("risk", "风险"), RISK_NAMES[found.risk_level], state=_STATES[found.risk_level])
    ]
    if found.axis is not None:
        tiles.append(Tile(
            Text("dim_ratio", "维度比 dim_ratio"), f"{times(found.dim_ratio)} ×",
            Text(f"axis {found.axis}: largest over smallest range", f"第 {found.axis} 轴：范围的最大与最小之比"),
        ))  # fmt: skip
    for name in ("fp16", "e4m3", "int8"):
        item = next((one for one in found.formats if one.format == name), None)
        if item is not None:
            tiles.append(Tile(
                Text(f"flushed in {name}", f"{name} 下溢"), f"{100 * item.flushed:.3g} %",
                Text(f"median error {100 * item.median_error:.3g} %",
                     f"中位误差 {100 * item.median_error:.3g} %"),
                state="warning" if item.flushed > 0.01 else "plain",
            ))  # fmt: skip
    return tiles
