"""The likely causes of a wrong answer in words: what was seen, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchstone.core.text import NOTHING, Text
from torchstone.kernels.messages.facts import Cause
from torchstone.kernels.sessions.calls import Call


@dataclass(frozen=True, slots=True)
class Advice:
    """What the author of a kernel reads beside the first wrong case."""

    why: Text = NOTHING
    remedy: Text = NOTHING


def _number(value: float) -> str:
    return f"{value:.4g}"


def _constant(cause: Cause) -> Advice:
    value = _number(cause.value)
    return Advice(
        Text(f"Every element of the answer is {value}.", f"结果的每个元素都是 {value}。"),
        Text("check that the kernel stores its result, and that its mask is not false everywhere",
             "检查内核是否写出了结果，以及掩码是否处处为假"),
    )  # fmt: skip


def _input(cause: Cause) -> Advice:
    place = cause.place
    return Advice(
        Text(f"The answer is input {place} unchanged.", f"结果就是未经改变的第 {place} 个输入。"),
        Text("store what was computed, not what was loaded", "写出计算结果，而不是读入的值"),
    )


def _sign(_: Cause) -> Advice:
    return Advice(
        Text("Every value has the wrong sign.", "所有值的符号都相反。"),
        Text("check the order of the subtraction", "检查减法的顺序"),
    )


def _factor(cause: Cause) -> Advice:
    value = _number(cause.value)
    return Advice(
        Text(f"Every value is {value} times what it should be.", f"所有值都是应有值的 {value} 倍。"),
        Text("check the scale: a sum where a mean is asked for, 1/n against 1/(n-1), a missing 1/sqrt(d)",
             "检查缩放：该用均值却用了求和、1/n 与 1/(n-1)、缺少 1/sqrt(d)"),
    )  # fmt: skip


def _offset(cause: Cause) -> Advice:
    value = _number(cause.value)
    return Advice(
        Text(f"Every value is off by {value}.", f"所有值都相差 {value}。"),
        Text("check the bias, the start value of the sum, and whether places count from 0",
             "检查偏置、累加的初值，以及下标是否从 0 开始"),
    )  # fmt: skip


def _transposed(_: Cause) -> Advice:
    return Advice(
        Text("The values are right, but rows and columns are exchanged.",
             "数值正确，但行与列互换了。"),
        Text("check the order of the strides in the stores", "检查写出时步长的顺序"),
    )  # fmt: skip


def _flipped(cause: Cause) -> Advice:
    axis = cause.axis
    return Advice(
        Text(f"The values are right, but run backwards along axis {axis}.",
             f"数值正确，但在第 {axis} 轴上顺序相反。"),
        Text("check the direction of the loop", "检查循环的方向"),
    )  # fmt: skip


def _shifted(cause: Cause) -> Advice:
    axis, step = cause.axis, cause.step
    return Advice(
        Text(f"The values are right, but {step:+d} place off along axis {axis}.",
             f"数值正确，但在第 {axis} 轴上偏移了 {step:+d} 位。"),
        Text("check the first index: an offset is one too large or too small", "检查起始下标：偏移量多一或少一"),
    )  # fmt: skip


def _axis(cause: Cause) -> Advice:
    op = cause.op
    return Advice(
        Text(f"The answer is what {op} gives along another axis than the reference's.",
             f"结果相当于 {op} 沿着与参考不同的轴计算。"),
        Text(f"run {op} along the axis that the reference names", f"让 {op} 沿参考指定的轴计算"),
    )  # fmt: skip


def _correction(cause: Cause) -> Advice:
    op = cause.op
    return Advice(
        Text(f"The answer is that of {op} with the other denominator, n against n-1.",
             f"结果相当于 {op} 使用了另一种分母（n 与 n-1）。"),
        Text("divide by n minus the correction that the reference uses", "分母用 n 减去参考所用的 correction"),
    )  # fmt: skip


def _epsilon(cause: Cause) -> Advice:
    op = cause.op
    return Advice(
        Text(f"The answer is that of {op} without its eps.", f"结果相当于 {op} 没有加 eps。"),
        Text("add eps to the variance before the square root", "在开平方之前把 eps 加到方差上"),
    )


def _maximum(cause: Cause) -> Advice:
    op = cause.op
    return Advice(
        Text(f"exp overflows: the answer is that of {op} without the maximum subtracted.",
             f"exp 溢出：结果相当于 {op} 没有减去最大值。"),
        Text("subtract the maximum of the line before exp, and add it again to a logarithm",
             "在 exp 之前减去该行的最大值；取对数后再加回"),
    )  # fmt: skip


def _one_pass(cause: Cause) -> Advice:
    op = cause.op
    return Advice(
        Text(f"The answer is that of {op} with the variance as mean(x²) − mean(x)², which cancels.",
             f"结果相当于 {op} 用 mean(x²) − mean(x)² 计算方差，会发生相消。"),
        Text("subtract the mean first and square then, or use Welford's update",
             "先减去均值再平方，或使用 Welford 更新"),
    )  # fmt: skip


def _precision(cause: Cause) -> Advice:
    name = cause.format
    return Advice(
        Text(f"The error has the size of rounding to {name}.",
             f"误差的大小相当于舍入到 {name.replace(' or ', ' 或 ')}。"),
        Text("keep what is loaded, the products and the sums in float32",
             "读入的值、乘积与累加都保持 float32"),
    )  # fmt: skip


def _range(cause: Cause) -> Advice:
    first, last, size, axis = cause.first, cause.last, cause.size, cause.axis
    where = Text(f"index {first}", f"下标 {first}") if first == last else Text(
        f"indices {first} to {last}", f"下标 {first} 至 {last}")  # fmt: skip
    return Advice(
        Text(f"Only {where.en} of axis {axis} (size {size}) are wrong.",
             f"只有第 {axis} 轴（长度 {size}）的{where.zh}出错。"),
        _TAIL if last == size - 1 else _START,
    )  # fmt: skip


def _tail(cause: Cause) -> Advice:
    count, size = cause.count, cause.size
    return Advice(
        Text(f"Only the last {count} of {size} elements in memory are wrong.",
             f"内存中 {size} 个元素里只有最后 {count} 个出错。"),
        _TAIL,
    )  # fmt: skip


_TAIL = Text(
    "check the tail mask, the number of blocks (round up), and the loop over the last block",
    "检查尾部掩码、分块数（向上取整）以及最后一个分块的循环",
)
_START = Text("check where the loop and the index of the block start", "检查循环与分块下标的起点")
_WORDS: dict[str, Callable[[Cause], Advice]] = {
    "constant": _constant, "input": _input, "sign": _sign, "factor": _factor, "offset": _offset,
    "transposed": _transposed, "flipped": _flipped, "shifted": _shifted, "axis": _axis,
    "correction": _correction, "epsilon": _epsilon, "maximum": _maximum, "one pass": _one_pass,
    "precision": _precision, "range": _range, "tail": _tail,
}  # fmt: skip

_FAMILIES: dict[tuple[str, ...], Advice] = {
    ("scalars",): Advice(
        Text("It is right for the number that the problem passes and wrong for other ones.",
             "对题目自身传入的数值正确，换成其他数值则出错。"),
        Text("use the number that is passed in, not a constant", "使用传入的数值，而不是常数"),
    ),
    ("truths",): Advice(
        Text("It is right for the problem's own mask and wrong for other ones.",
             "对题目自身的掩码正确，对其他掩码出错。"),
        Text("read the mask that is passed in, also where a whole line of it is true or false",
             "读取传入的掩码，包括整行为真或为假的情形"),
    ),
    ("strided", "expanded", "shared", "unaligned"): Advice(
        Text("It is right for contiguous memory and wrong for the same numbers in another layout.",
             "内存连续时正确，同样的数换一种内存布局就出错。"),
        Text("call .contiguous() first, or compute addresses from stride(); if it is only ever given contiguous "
             "memory, verify it with --layouts own",
             "先调用 .contiguous()，或用 stride() 计算地址；若只会收到连续内存，请用 --layouts own 验证"),
    ),
    ("prime", "power", "equal", "one", "empty", "larger", "lengths", "slender"): Advice(
        Text("It is right for the problem's own sizes and wrong for others that the reference takes.",
             "对题目自身的尺寸正确，对参考同样接受的其他尺寸出错。"),
        Text("check masks and loops for sizes that are no multiple of the block and for more than one "
             "block, or raise an error for them; if it is only ever given the problem's sizes, verify it with --sizes own",
             "检查尺寸不是分块整数倍、或多于一个分块时的掩码与循环；否则应抛出错误；"
             "若只会收到问题自身的尺寸，请用 --sizes own 验证"),
    ),
    ("tiny", "ladder", "graded"): Advice(
        Text("It is right for numbers of the usual size and loses small ones.",
             "对通常大小的数正确，小的数会丢失精度。"),
        Text("keep full precision for small numbers: no absolute threshold, no scale shared with large ones",
             "小的数也要保持全部精度：不要使用绝对阈值，也不要与大的数共用缩放"),
    ),
    ("large", "negative", "zeros", "ties", "one-hot", "lines", "extreme", "repeated"): Advice(
        Text("It is right for the problem's own numbers and wrong for others that the reference takes.",
             "对题目自身的数值正确，对参考同样接受的其他数值出错。"),
        Text("compute for every sign and size of the numbers, as the reference does",
             "像参考那样处理任何符号与大小的数"),
    ),
}  # fmt: skip
"""What a family that fails alone tells, where no cause was found by running."""


def advice_for(calls: Sequence[Call]) -> Advice:
    """The likely cause that the first wrong calls show; nothing where none is known."""
    causes = [item for call in calls for item in call.facts.causes if item.code in _WORDS]
    if causes:
        return _WORDS[causes[0].code](causes[0])
    family = calls[0].family if calls else ""
    return next((item for names, item in _FAMILIES.items() if family in names), Advice())
