"""Changes that would make a refused call work: each is tried by running the program with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from math import prod
from typing import Any

import torch
from torch import nn

from torchstone.dryrun.record import NO_CHANGE, SourceChange
from torchstone.dryrun.shapes.history import function_name

Call = Callable[[Any, Any, dict[str, Any]], Any]


@dataclass(frozen=True)
class Candidate:
    """One change, in words and as another way to make the call."""

    en: str
    zh: str
    call: Call
    changes_layer: bool = False
    """It replaces the weight of a layer: only a copy of the program may do that."""
    source: SourceChange = NO_CHANGE
    """The same change in the source, where it is one of an argument or of a layer."""


def candidates(
    func: Any, args: Any, kwargs: dict[str, Any], module: nn.Module | None
) -> Iterator[Candidate]:
    """The likeliest changes first."""
    name = function_name(func).rpartition(".")[2]
    tensors = [item for item in args if isinstance(item, torch.Tensor)]
    yield from _devices(args, tensors)
    yield from _formats(name, args, tensors)
    for family, make in _FAMILIES:
        if name in family:
            yield from make(name, args, kwargs, module)


def _with(args: Any, index: int, change: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    def call(func: Any, given: Any, kwargs: dict[str, Any]) -> Any:
        return func(*given[:index], change(given[index]), *given[index + 1 :], **kwargs)

    del args
    return call


def _devices(args: Any, tensors: list[torch.Tensor]) -> Iterator[Candidate]:
    places = {item.device for item in tensors}
    if len(places) < 2:
        return
    target = next((place for place in places if place.type != "cpu"), tensors[0].device)

    def call(func: Any, given: Any, kwargs: dict[str, Any]) -> Any:
        moved = [item.to(target) if isinstance(item, torch.Tensor) else item for item in given]
        return func(*moved, **kwargs)

    yield Candidate(
        "move all tensors of the call to one device: .to(device)",
        "把该调用的所有张量移到同一设备：.to(device)", call,
    )  # fmt: skip


def _formats(name: str, args: Any, tensors: list[torch.Tensor]) -> Iterator[Candidate]:
    if name == "embedding" and tensors and tensors[0].is_floating_point():
        yield Candidate("give indices as int64: .long()", "索引改为 int64：.long()",
                        _with(args, 0, lambda item: item.long()), source=SourceChange(0, ".long()"))  # fmt: skip
    if name in ("cross_entropy", "nll_loss") and len(tensors) > 1:
        if tensors[1].dtype != torch.int64:
            yield Candidate("give class indices as int64: target.long()",
                            "类别索引改为 int64：target.long()",
                            _with(args, 1, lambda item: item.long()), source=SourceChange(1, ".long()"))  # fmt: skip
        return
    if len({item.dtype for item in tensors}) < 2 or len(tensors) < 2:
        return
    wanted = next(
        (item.dtype for item in tensors if isinstance(item, nn.Parameter)), tensors[0].dtype
    )
    for index, item in enumerate(args):
        if isinstance(item, torch.Tensor) and item.dtype != wanted:
            text = str(wanted).removeprefix("torch.")
            yield Candidate(f"convert argument {index} to {text}: .to(torch.{text})",
                            f"把第 {index} 个参数转为 {text}：.to(torch.{text})",
                            _with(args, index, lambda item: item.to(wanted)),
                            source=SourceChange(index, f".to(torch.{text})"))  # fmt: skip


def _linear(name: str, args: Any, kwargs: Any, module: nn.Module | None) -> Iterator[Candidate]:
    x, weight = args[0], args[1]
    wanted = weight.shape[-1]
    if x.dim() > 2 and prod(x.shape[1:]) == wanted:
        yield Candidate(f"flatten before the layer: x.flatten(1) has {wanted} features",
                        f"在该层之前展平：x.flatten(1) 有 {wanted} 个特征",
                        _with(args, 0, lambda item: item.flatten(1)), source=SourceChange(0, ".flatten(1)"))  # fmt: skip
    for axis in range(x.dim() - 1):
        if x.shape[axis] == wanted:
            yield Candidate(f"the axes are transposed: x.transpose({axis}, -1)",
                            f"维度顺序颠倒：x.transpose({axis}, -1)",
                            _with(args, 0, partial(torch.transpose, dim0=axis, dim1=-1)),
                            source=SourceChange(0, f".transpose({axis}, -1)"))  # fmt: skip
    if x.dim() > 2 and prod(x.shape[1:]) != wanted:
        size = prod(x.shape[1:])
        yield Candidate(f"flatten before the layer and set in_features={size}",
                        f"在该层之前展平，并设 in_features={size}",
                        _resized(module, size, flatten=True), True,
                        SourceChange(0, ".flatten(1)", "in_features", size))  # fmt: skip
    if x.dim():
        yield Candidate(f"set in_features={x.shape[-1]}", f"设 in_features={x.shape[-1]}",
                        _resized(module, x.shape[-1]), True, SourceChange(layer="in_features", size=x.shape[-1]))  # fmt: skip


def _resized(module: nn.Module | None, size: int, flatten: bool = False) -> Call:
    """The layer with another number of inputs, from now on."""

    def call(func: Any, given: Any, kwargs: dict[str, Any]) -> Any:
        weight = given[1]
        wider = weight.new_empty((weight.shape[0], size, *weight.shape[2:]))
        if isinstance(weight, nn.Parameter):
            wider = nn.Parameter(wider)
        if module is not None and getattr(module, "weight", None) is weight:
            module.weight = wider
        x = given[0].flatten(1) if flatten else given[0]
        return func(x, wider, *given[2:], **kwargs)

    return call


def _conv(name: str, args: Any, kwargs: Any, module: nn.Module | None) -> Iterator[Candidate]:
    x, weight = args[0], args[1]
    groups = args[6] if len(args) > 6 else kwargs.get("groups", 1)
    wanted = weight.shape[1] * groups
    spatial = weight.dim() - 2
    if x.dim() == spatial + 2 and x.shape[-1] == wanted:
        order = (0, spatial + 1, *range(1, spatial + 1))
        yield Candidate(f"channels are last: x.permute{order}", f"通道在最后一维：x.permute{order}",
                        _with(args, 0, lambda item: item.permute(order)), source=SourceChange(0, f".permute{order}"))  # fmt: skip
    if x.dim() == spatial + 1 and wanted == 1:
        yield Candidate("the channel axis is missing: x.unsqueeze(1)", "缺少通道维：x.unsqueeze(1)",
                        _with(args, 0, lambda item: item.unsqueeze(1)), source=SourceChange(0, ".unsqueeze(1)"))  # fmt: skip
    if x.dim() == spatial + 2 and x.shape[1] != wanted and groups == 1:
        yield Candidate(f"set in_channels={x.shape[1]}", f"设 in_channels={x.shape[1]}",
                        _resized(module, x.shape[1]), True, SourceChange(layer="in_channels", size=x.shape[1]))  # fmt: skip
    need = [max(0, k - n) for n, k in zip(x.shape[-spatial:], weight.shape[2:], strict=False)]
    if x.dim() >= spatial + 1 and any(need):
        pad = max((item + 1) // 2 for item in need)

        def padded(func: Any, given: Any, kwargs: dict[str, Any]) -> Any:
            values = [*given[:4], pad, *given[5:]]
            return func(*values, **kwargs)

        kernel = tuple(weight.shape[2:])
        yield Candidate(f"the kernel {kernel} is larger than its input: set padding={pad}, or a smaller kernel",
                        f"卷积核 {kernel} 大于输入：设 padding={pad} 或使用更小的卷积核", padded)  # fmt: skip


def _matmul(name: str, args: Any, kwargs: Any, module: nn.Module | None) -> Iterator[Candidate]:
    left, right = args[0], args[1]
    if right.dim() > 1 and left.shape[-1] == right.shape[-1]:
        yield Candidate("transpose the right operand: .transpose(-2, -1)",
                        "转置右操作数：.transpose(-2, -1)",
                        _with(args, 1, lambda item: item.transpose(-2, -1)), source=SourceChange(1, ".transpose(-2, -1)"))  # fmt: skip
    inner = right.shape[-2] if right.dim() > 1 else right.shape[0]
    if left.dim() > 1 and left.shape[-2] == inner:
        yield Candidate("transpose the left operand: .transpose(-2, -1)",
                        "转置左操作数：.transpose(-2, -1)",
                        _with(args, 0, lambda item: item.transpose(-2, -1)), source=SourceChange(0, ".transpose(-2, -1)"))  # fmt: skip


def _elementwise(
    name: str, args: Any, kwargs: Any, module: nn.Module | None
) -> Iterator[Candidate]:
    if len(args) < 2 or not all(isinstance(item, torch.Tensor) for item in args[:2]):
        return
    left, right = args[0], args[1]
    for index, small, large in ((1, right, left), (0, left, right)):
        for axis in range(small.dim() + 1):
            shape = list(small.shape)
            shape.insert(axis, 1)
            if small.dim() < large.dim() and _broadcasts_to(shape, large.shape):
                yield Candidate(f"add an axis to argument {index}: .unsqueeze({axis})",
                                f"给第 {index} 个参数增加一维：.unsqueeze({axis})",
                                _with(args, index, partial(torch.unsqueeze, dim=axis)),
                                source=SourceChange(index, f".unsqueeze({axis})"))  # fmt: skip
        for order in permutations(range(small.dim())) if small.dim() <= 4 else ():
            shape = [small.shape[axis] for axis in order]
            if order != tuple(range(small.dim())) and shape == list(large.shape):
                yield Candidate(f"the axes of argument {index} are in another order: .permute{order}",
                                f"第 {index} 个参数的维度顺序不同：.permute{order}",
                                _with(args, index, partial(torch.permute, dims=order)),
                                source=SourceChange(index, f".permute{order}"))  # fmt: skip
        if small.numel() == large.numel() and small.shape != large.shape:
            yield Candidate(f"give argument {index} the shape of the other: .reshape{tuple(large.shape)}",
                            f"使第 {index} 个参数与另一个同形：.reshape{tuple(large.shape)}",
                            _with(args, index, partial(torch.reshape, shape=tuple(large.shape))))  # fmt: skip
            return


def _broadcasts_to(shape: list[int], target: Any) -> bool:
    return len(shape) == len(target) and all(
        one in (1, other) for one, other in zip(shape, target, strict=True)
    )


def _view(name: str, args: Any, kwargs: Any, module: nn.Module | None) -> Iterator[Candidate]:
    x = args[0]
    sizes = (
        list(args[1]) if len(args) == 2 and isinstance(args[1], (tuple, list)) else list(args[1:])
    )
    if not all(isinstance(size, int) for size in sizes):
        return
    rest = prod(size for size in sizes if size != -1)
    if -1 in sizes or rest == x.numel():
        yield Candidate("use reshape instead of view", "用 reshape 代替 view",
                        lambda func, given, kw: given[0].reshape(sizes))  # fmt: skip
    tail = prod(sizes[1:]) if sizes else 0
    if len(sizes) > 1 and -1 not in sizes[1:] and tail and x.numel() % tail == 0:
        free = [-1, *sizes[1:]]
        yield Candidate(f"leave the batch axis open: .{name}({', '.join(map(str, free))})",
                        f"批维度不要写死：.{name}({', '.join(map(str, free))})",
                        lambda func, given, kw: given[0].reshape(free))  # fmt: skip
    if x.dim() > 1 and len(sizes) == 2:
        yield Candidate(f"keep the batch axis: .{name}(x.size(0), -1)",
                        f"保留批维度：.{name}(x.size(0), -1)",
                        lambda func, given, kw: given[0].reshape(given[0].shape[0], -1))  # fmt: skip


def _classes(name: str, args: Any, kwargs: Any, module: nn.Module | None) -> Iterator[Candidate]:
    logits, target = args[0], args[1]
    if logits.dim() >= 3 and target.dim() == logits.dim() - 1 and logits.shape[:-1] == target.shape:

        def flat(func: Any, given: Any, kw: dict[str, Any]) -> Any:
            return func(given[0].flatten(0, -2), given[1].flatten(), *given[2:], **kw)

        yield Candidate("classes are on the last axis: logits.flatten(0, -2), target.flatten()",
                        "类别在最后一维：logits.flatten(0, -2)、target.flatten()", flat)  # fmt: skip
    if target.dim() == logits.dim() and target.shape[-1] == 1:
        yield Candidate("drop the last axis of the target: target.squeeze(-1)",
                        "去掉目标的最后一维：target.squeeze(-1)",
                        _with(args, 1, lambda item: item.squeeze(-1)), source=SourceChange(1, ".squeeze(-1)"))  # fmt: skip
    if target.dim() == 1 and logits.dim() == 2 and logits.shape[1] == target.shape[0]:
        yield Candidate("the logits are transposed: logits.t()", "logits 被转置：logits.t()",
                        _with(args, 0, lambda item: item.t()), source=SourceChange(0, ".t()"))  # fmt: skip


def _joined_along(axis: int) -> Call:
    return lambda func, given, kw: func(given[0], axis)


def _joined(name: str, args: Any, kwargs: Any, module: nn.Module | None) -> Iterator[Candidate]:
    if not isinstance(args[0], (tuple, list)):
        return
    now = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    first = args[0][0]
    for axis in range(first.dim()):
        if axis != now and name in ("cat", "concat"):
            yield Candidate(f"join along axis {axis}: dim={axis}", f"沿第 {axis} 维拼接：dim={axis}",
                            _joined_along(axis))  # fmt: skip


_FAMILIES: tuple[tuple[frozenset[str], Any], ...] = (
    (frozenset({"linear"}), _linear),
    (frozenset({"conv1d", "conv2d", "conv3d"}), _conv),
    (frozenset({"matmul", "__matmul__", "mm", "bmm"}), _matmul),
    (frozenset({"view", "reshape"}), _view),
    (frozenset({"cross_entropy", "nll_loss"}), _classes),
    (frozenset({"cat", "stack", "concat"}), _joined),
    (
        frozenset(
            "add sub mul div __add__ __sub__ __mul__ __truediv__ mse_loss l1_loss smooth_l1_loss "
            "binary_cross_entropy binary_cross_entropy_with_logits where maximum minimum".split()
        ),
        _elementwise,
    ),
)
