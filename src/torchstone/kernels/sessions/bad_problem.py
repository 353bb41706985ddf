"""Problems that cannot be used: what the referee said of them, for the person who wrote them."""

from __future__ import annotations

import re

from torchstone.core.errors import InputError
from torchstone.core.quantity import human
from torchstone.core.text import Text, shortened

_USABLE = Text(
    "a problem that loads, gives inputs and answers them", "能够加载、给出输入并给出答案的问题"
)
_FIX = Text("fix the problem and try again", "请修正该问题后重试")
_LIST = Text("a list of inputs", "由输入组成的列表")
_GAVE = re.compile(r"get_inputs\(\) gave (\w+) with nothing in it")
_NO_PART = re.compile(r"no (Model|get_inputs|get_init_inputs)")
_IN_CHINESE = {
    "the reference draws its answer at random":
        "参考的答案是随机产生的（训练模式下的 dropout、rand_like），任何候选都无法与之比较；请在 get_inputs 中产生随机数",
    "two calls of the model on the same inputs differ":
        "模型对同样的输入两次调用结果不同，因为第一次调用改变了其状态，任何候选都无法与之比较；"
        "请在 Model 中调用 eval()，或在 get_inputs 中传入状态",
    "the model gives no output": "模型没有输出",
    "the model gives something that is no tensor": "模型的输出既不是张量也不是数",
    "the model gives complex numbers":
        "模型输出复数，而复数没有大小之分；请返回其 torch.view_as_real",
}  # fmt: skip
"""By how the referee's words begin."""


def slow_problem(name: str, seconds: float) -> InputError:
    """The reference did not answer in time."""
    return InputError(
        f"problem {name}",
        Text(f"no answer of the reference within {seconds:g} s", f"参考在 {seconds:g} 秒内没有回答"),
        Text("an answer within the seconds of --timeout", "在 --timeout 的秒数内给出答案"),
        Text("allow more with --timeout of `kernel verify`, or give smaller inputs in get_inputs",
             "请增大 `kernel verify` 的 --timeout，或在 get_inputs 中给出更小的输入"),
    )  # fmt: skip


class LargeProblemError(InputError):
    """The reference ran out of memory: a limit of this machine, and no fault of anybody."""

    def __init__(self, name: str, limit_bytes: int) -> None:
        size = human(limit_bytes, "B")
        self.what = Text(
            f"the reference ran out of memory ({size} may be used, --memory)",
            f"参考内存不足（可用 {size}，--memory）",
        )
        super().__init__(
            f"problem {name}",
            Text(f"a reference that needs more than {size} of memory", f"参考所需内存超过 {size}"),
            Text(f"inputs and an answer that fit into {size}", f"输入与一个答案能放入 {size}"),
            Text("allow more with --memory, such as --memory 20G", "请用 --memory 允许更多内存，例如 --memory 20G"),
        )  # fmt: skip


def too_large_to_keep(name: str, most_elements: int) -> InputError:
    """Inputs of which no dozens of cases can be kept, where smaller ones may not be asked."""
    return InputError(
        f"problem {name}",
        Text(f"inputs of more than {most_elements:,} elements, with --sizes own",
             f"在 --sizes own 下，输入超过 {most_elements:,} 个元素"),
        Text("inputs that can be tried in many ways as they are", "可以按原尺寸多次尝试的输入"),
        Text("give smaller inputs of a kind that the kernel takes in get_inputs, or leave --sizes out",
             "请在 get_inputs 中给出内核可接受的较小输入，或省略 --sizes"),
    )  # fmt: skip


def bad_problem(name: str, said: str, line: int) -> InputError:
    """The problem failed, or is none."""
    where = f"problem {name}" + (f" (line {line})" if line else "")
    gave = _GAVE.fullmatch(said)
    if gave and gave[1] in ("list", "tuple"):
        empty = Text(
            f"a {gave[1]} with nothing in it from get_inputs()", f"get_inputs() 给出的空 {gave[1]}"
        )
        return InputError(where, empty, _LIST, _FIX)
    if gave:
        other = Text(f"a {gave[1]} from get_inputs()", f"get_inputs() 给出的 {gave[1]}")
        todo = Text(
            "return a list, also of a single input: [x]", "请返回列表，只有一个输入时也一样：[x]"
        )
        return InputError(where, other, _LIST, todo)
    return InputError(where, Text(shortened(said, 300), _chinese(said)), _USABLE, _FIX)


def _chinese(said: str) -> str:
    if part := _NO_PART.fullmatch(said):
        return f"缺少 {part[1]}"
    if said.startswith("killed by "):
        return f"进程因 {said.removeprefix('killed by ')} 结束"
    if said == "CPU time is up":
        return "CPU 时间已用尽"
    known = next((zh for en, zh in _IN_CHINESE.items() if said.startswith(en)), said)
    return shortened(known, 300)
