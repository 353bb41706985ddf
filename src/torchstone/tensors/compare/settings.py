"""How a comparison of precisions is run, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.tensors.compare.shadow.simulate import kernels_work
from torchstone.tensors.compare.step import LossFunction
from torchstone.tensors.names import names_given

_LOW = (torch.bfloat16, torch.float16, torch.float32)


@dataclass(frozen=True)
class Settings:
    """How a comparison is run."""

    low: torch.dtype
    high: torch.dtype
    loss: LossFunction | None
    layers: tuple[str, ...]
    backward: bool
    autocast: bool
    loss_scale: float
    per_layer: bool
    simulate: bool
    seed: int


def checked_settings(
    model: object, low: object, high: object, loss: LossFunction | None,
    layers: str | Sequence[str] | None, backward: bool | None, autocast: bool, scaler: Any, per_layer: bool,
    simulate: bool | None, seed: int,
) -> Settings:  # fmt: skip
    if not isinstance(model, nn.Module):
        raise UsageError(
            "compare_precision: model", Text(f"a {type(model).__name__}", type(model).__name__), Text("a torch module", "torch 模块"),
            Text("pass the nn.Module itself", "请传入 nn.Module 本身"),
        )  # fmt: skip
    if low not in _LOW:
        raise UsageError(
            "compare_precision: low", str(low), Text("bfloat16, float16 or float32", "bfloat16、float16 或 float32"),
            Text("pass low=torch.bfloat16", "例如 low=torch.bfloat16"),
        )  # fmt: skip
    assert isinstance(low, torch.dtype)
    wide = high if high is not None else torch.float32 if low.itemsize <= 2 else torch.float64
    if wide not in (torch.float32, torch.float64) or wide.itemsize <= low.itemsize:
        raise UsageError(
            "compare_precision: high", str(wide), Text("a wider type than low", "比 low 更宽的类型"),
            Text("pass high=torch.float64", "例如 high=torch.float64"),
        )  # fmt: skip
    names = {name for name, _ in model.named_modules()}
    chosen = names_given("compare_precision: layers", layers) or ()
    for name in chosen:
        if name not in names:
            raise unknown("compare_precision: layers", name, sorted(names - {""}))
    check_weights("compare_precision: model", model)
    check_seed("compare_precision: seed", seed)
    scale = _loss_scale(scaler)
    trains = any(item.requires_grad for item in model.parameters())
    rounded = simulate if simulate is not None else not kernels_work(low)
    assert isinstance(wide, torch.dtype)
    return Settings(
        low, wide, loss, chosen, trains if backward is None else backward, autocast,
        scale, per_layer, rounded, seed,
    )  # fmt: skip


def _loss_scale(scaler: Any) -> float:
    if scaler is None:
        return 1.0
    scale = scaler.get_scale() if callable(getattr(scaler, "get_scale", None)) else None
    if not isinstance(scale, int | float):
        raise UsageError(
            "compare_precision: scaler", f"{scaler!r:.80}",
            Text("a GradScaler: an object with get_scale()", "GradScaler，即具有 get_scale() 的对象"),
            Text("pass the torch.amp.GradScaler of your training loop",
                 "请传入训练循环所用的 torch.amp.GradScaler"),
        )  # fmt: skip
    return float(scale)


def check_seed(where: str, seed: object) -> None:
    if not isinstance(seed, int) or not 0 <= seed < 1 << 63:
        raise UsageError(
            where, f"{seed!r:.80}", Text("a whole number from 0 on", "不小于 0 的整数"),
            Text("leave it out for 0", "省略则为 0"),
        )  # fmt: skip


def check_weights(where: str, model: nn.Module) -> None:
    """Lazy parameters and those on the meta device have no values yet."""
    for item in model.parameters():
        lazy = isinstance(item, nn.UninitializedParameter)
        if lazy or item.is_meta:
            raise InputError(
                where, Text("lazy parameters", "尚未初始化的参数") if lazy
                else Text("parameters on the meta device", "meta 设备上的参数"),
                Text("a model with weights", "带有权重的模型"),
                Text("run it once first", "请先运行一次") if lazy else Text("load it first", "请先加载权重"),
            )  # fmt: skip


def check_number(where: str, value: object) -> None:
    if not isinstance(value, int | float) or not value >= 0:
        raise UsageError(
            where, repr(value), Text("a number from 0 on", "不小于 0 的数"),
            Text("leave it out for the default", "省略则使用默认值"),
        )  # fmt: skip
