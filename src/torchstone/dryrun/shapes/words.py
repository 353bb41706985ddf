"""A refused call in our own words: what the operator needs and what it was given."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from torchstone.core.text import Text
from torchstone.dryrun.record import Operand, OperatorError
from torchstone.observe.compat.messages import is_about_devices

Explain = Callable[[OperatorError], Text | None]


def explain(error: OperatorError) -> Text:
    """What was expected, by operator; torch's own words where we have none."""
    devices = {item.device for item in error.operands}
    if len(devices) > 1 and is_about_devices(error.message):
        return _devices(error)
    name = error.op.rpartition(".")[2]
    explainer = _EXPLAINERS.get(name)
    said = explainer(error) if explainer is not None else None
    if said is None:
        said = _dtypes(error)
    if said is not None:
        return said
    first = " ".join(error.message.split())[:300]
    return Text(f"torch says: {first}", f"torch 的说明：{first}")


def shape_text(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _named(error: OperatorError, *names: str) -> list[Operand]:
    found = {item.name: item for item in error.operands}
    return [found[name] for name in names if name in found]


def _first_two(error: OperatorError) -> tuple[Operand, Operand] | None:
    return (error.operands[0], error.operands[1]) if len(error.operands) >= 2 else None


def _devices(error: OperatorError) -> Text:
    shown = ", ".join(f"{item.name} on {item.device}" for item in error.operands)
    shown_zh = "，".join(f"{item.name} 在 {item.device}" for item in error.operands)
    return Text(
        f"all tensors on one device are needed; {shown}", f"所有张量须在同一设备上；{shown_zh}"
    )


def _dtypes(error: OperatorError) -> Text | None:
    formats = {item.dtype for item in error.operands}
    if len(formats) < 2 or not re.search(r"dtype|type|Float|Long|Half", error.message):
        return None
    shown = ", ".join(f"{item.name} is {item.dtype}" for item in error.operands)
    shown_zh = "，".join(f"{item.name} 为 {item.dtype}" for item in error.operands)
    return Text(f"number formats do not match: {shown}", f"数值格式不匹配：{shown_zh}")


def _linear(error: OperatorError) -> Text | None:
    pair = _first_two(error)
    if pair is None or len(pair[1].shape) != 2 or not pair[0].shape:
        return None
    given, weight = pair
    if given.shape[-1] == weight.shape[-1]:
        return None
    wanted = weight.shape[-1]
    return Text(
        f"the last axis of the input must be in_features = {wanted}; it is {given.shape[-1]} "
        f"in {shape_text(given.shape)}",
        f"输入的最后一维必须等于 in_features = {wanted}；实际 {shape_text(given.shape)} 中为 "
        f"{given.shape[-1]}",
    )


def _conv(error: OperatorError) -> Text | None:
    pair = _first_two(error)
    if pair is None:
        return None
    given, weight = pair
    spatial = len(weight.shape) - 2
    groups = _integer(dict(error.arguments).get("groups", "1"))
    channels = weight.shape[1] * groups
    if len(given.shape) not in (spatial + 1, spatial + 2):
        return Text(
            f"the input must have {spatial + 2} axes (batch, channels, then {spatial} of space); "
            f"{shape_text(given.shape)} has {len(given.shape)}",
            f"输入须有 {spatial + 2} 个维度（批、通道、{spatial} 个空间维）；"
            f"{shape_text(given.shape)} 有 {len(given.shape)} 个",
        )
    found = given.shape[-spatial - 1]
    if found != channels:
        return Text(
            f"axis {len(given.shape) - spatial - 1} of the input must be in_channels = {channels}; "
            f"it is {found} in {shape_text(given.shape)}",
            f"输入的第 {len(given.shape) - spatial - 1} 维必须等于 in_channels = {channels}；"
            f"实际 {shape_text(given.shape)} 中为 {found}",
        )
    return (
        Text(
            f"the kernel {shape_text(weight.shape[2:])} is larger than the padded input "
            f"{shape_text(given.shape[-spatial:])}",
            f"卷积核 {shape_text(weight.shape[2:])} 大于填充后的输入 {shape_text(given.shape[-spatial:])}",
        )
        if "Kernel size" in error.message or "kernel" in error.message.lower()
        else None
    )


def _integer(text: str) -> int:
    return int(text) if text.isdigit() else 1


def _matmul(error: OperatorError) -> Text | None:
    pair = _first_two(error)
    if pair is None or not pair[0].shape or not pair[1].shape:
        return None
    left, right = pair
    inner = right.shape[-2] if len(right.shape) > 1 else right.shape[0]
    if left.shape[-1] == inner:
        return None
    return Text(
        f"the last axis of the left operand ({left.shape[-1]}) must equal the last but one of the "
        f"right ({inner}): {shape_text(left.shape)} @ {shape_text(right.shape)}",
        f"左操作数的最后一维（{left.shape[-1]}）必须等于右操作数的倒数第二维（{inner}）："
        f"{shape_text(left.shape)} @ {shape_text(right.shape)}",
    )


def _elementwise(error: OperatorError) -> Text | None:
    pair = _first_two(error)
    if pair is None:
        return None
    left, right = pair
    clash = clashing_axis(left.shape, right.shape)
    if clash is None:
        return None
    return Text(
        f"{shape_text(left.shape)} and {shape_text(right.shape)} cannot be broadcast: axis {clash} "
        f"counted from the end is {left.shape[clash]} and {right.shape[clash]}",
        f"{shape_text(left.shape)} 与 {shape_text(right.shape)} 无法广播：从末尾数第 {clash} 维"
        f"分别为 {left.shape[clash]} 与 {right.shape[clash]}",
    )


def clashing_axis(left: tuple[int, ...], right: tuple[int, ...]) -> int | None:
    """The axis, counted from the end (-1), at which two shapes cannot be broadcast."""
    for axis in range(1, min(len(left), len(right)) + 1):
        if left[-axis] != right[-axis] and 1 not in (left[-axis], right[-axis]):
            return -axis
    return None


def _view(error: OperatorError) -> Text | None:
    if not error.operands:
        return None
    given = error.operands[0]
    sizes = [int(word) for _, value in error.arguments for word in re.findall(r"-?\d+", value)]
    total = prod(given.shape)
    fixed = prod(size for size in sizes if size != -1)
    wanted = ", ".join(map(str, sizes))
    if -1 in sizes and fixed and total % fixed:
        return Text(
            f"({wanted}) needs a multiple of {fixed} elements; {shape_text(given.shape)} has {total}",
            f"({wanted}) 需要 {fixed} 的整数倍个元素；{shape_text(given.shape)} 有 {total} 个",
        )
    if -1 not in sizes and fixed != total:
        return Text(
            f"({wanted}) holds {fixed} elements; {shape_text(given.shape)} has {total}",
            f"({wanted}) 含 {fixed} 个元素；{shape_text(given.shape)} 有 {total} 个",
        )
    return Text(
        "the axes are not contiguous in memory, as after a transpose: view cannot merge them, "
        "reshape can",
        "各维在内存中不连续（例如转置之后）：view 无法合并，reshape 可以",
    )


def _cat(error: OperatorError) -> Text | None:
    shapes = [item.shape for item in error.operands]
    if len(shapes) < 2:
        return None
    shown = ", ".join(map(shape_text, shapes[:6]))
    axis = dict(error.arguments).get("dim", "0")
    return Text(
        f"all axes but axis {axis} must be equal; the shapes are {shown}",
        f"除第 {axis} 维外各维必须相等；形状为 {shown}",
    )


def _stack(error: OperatorError) -> Text | None:
    shown = ", ".join(shape_text(item.shape) for item in error.operands[:6])
    return Text(f"all shapes must be equal; they are {shown}", f"所有形状必须相等；实际为 {shown}")


def _cross_entropy(error: OperatorError) -> Text | None:
    pair = _first_two(error)
    if pair is None:
        return None
    logits, target = pair
    if target.dtype not in ("int64", "uint8") and target.shape != logits.shape:
        return Text(
            f"class indices must be int64; the target is {target.dtype}",
            f"类别索引必须为 int64；目标为 {target.dtype}",
        )
    expected = (logits.shape[0], *logits.shape[2:]) if len(logits.shape) > 1 else ()
    return Text(
        f"for logits {shape_text(logits.shape)} (axis 1 holds the classes) the target must be "
        f"{shape_text(expected)}; it is {shape_text(target.shape)}",
        f"logits 为 {shape_text(logits.shape)}（第 1 维为类别），目标应为 {shape_text(expected)}；"
        f"实际为 {shape_text(target.shape)}",
    )


def _same_shape(error: OperatorError) -> Text | None:
    pair = _first_two(error)
    if pair is None or pair[0].shape == pair[1].shape:
        return None
    left, right = pair
    return Text(
        f"{left.name} {shape_text(left.shape)} and {right.name} {shape_text(right.shape)} must have "
        "the same shape",
        f"{left.name} {shape_text(left.shape)} 与 {right.name} {shape_text(right.shape)} 的形状必须相同",
    )


def _embedding(error: OperatorError) -> Text | None:
    indices = _named(error, "input") or list(error.operands[:1])
    if indices and indices[0].dtype not in ("int64", "int32"):
        return Text(
            f"indices must be int64 or int32; they are {indices[0].dtype}",
            f"索引必须为 int64 或 int32；实际为 {indices[0].dtype}",
        )
    return None


def _normalization(error: OperatorError) -> Text | None:
    if not error.operands:
        return None
    given = error.operands[0]
    sized = [item for item in error.operands[1:] if len(item.shape) == 1]
    if sized and len(given.shape) > 1:
        return (
            Text(
                f"axis 1 of the input must be num_features = {sized[0].shape[0]}; it is "
                f"{given.shape[1]} in {shape_text(given.shape)}",
                f"输入的第 1 维必须等于 num_features = {sized[0].shape[0]}；实际 "
                f"{shape_text(given.shape)} 中为 {given.shape[1]}",
            )
            if sized[0].shape[0] != given.shape[1]
            else None
        )
    return None


def _layer_norm(error: OperatorError) -> Text | None:
    weights = [item for item in error.operands[1:] if item.is_parameter]
    if not error.operands or not weights:
        return None
    given, wanted = error.operands[0], weights[0].shape
    if given.shape[-len(wanted) :] == wanted:
        return None
    return Text(
        f"the last axes of the input must be normalized_shape = {shape_text(wanted)}; the input is "
        f"{shape_text(given.shape)}",
        f"输入的最后几维必须等于 normalized_shape = {shape_text(wanted)}；输入为 "
        f"{shape_text(given.shape)}",
    )


_EXPLAINERS: dict[str, Explain] = {
    "linear": _linear,
    "conv1d": _conv,
    "conv2d": _conv,
    "conv3d": _conv,
    "matmul": _matmul,
    "__matmul__": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "view": _view,
    "reshape": _view,
    "cat": _cat,
    "stack": _stack,
    "cross_entropy": _cross_entropy,
    "nll_loss": _cross_entropy,
    "mse_loss": _elementwise,
    "l1_loss": _elementwise,
    "binary_cross_entropy": _same_shape,
    "binary_cross_entropy_with_logits": _same_shape,
    "embedding": _embedding,
    "batch_norm": _normalization,
    "layer_norm": _layer_norm,
    **dict.fromkeys(
        "add sub mul div __add__ __sub__ __mul__ __truediv__ __iadd__ __radd__ __rsub__ __rmul__ "
        "add_ sub_ mul_ maximum minimum where eq lt gt le ge __eq__ copy_".split(),
        _elementwise,
    ),
}
