"""Why each part of the policy is there, and what the author of a kernel does instead."""

from __future__ import annotations

from torchstone.core.text import Text
from torchstone.kernels.policy.syntax import Reason

SYNTAX = Reason(
    Text(
        "A file that does not parse cannot be looked at or run.",
        "无法解析的文件既不能检查也不能运行。",
    ),
    Text("write valid Python; nothing else was checked", "请写出合法的 Python；其余内容未检查"),
)
IMPORT = Reason(
    Text("A kernel computes: files, processes and the interpreter are not needed for that.",
         "内核只做计算，不需要文件、进程或解释器。"),
    Text("use only the imports that docs/kernel.md lists", "只使用 docs/kernel.md 列出的导入"),
)  # fmt: skip
REACH = Reason(
    Text("Frames, private members and the reference are how public checkers were fooled.",
         "栈帧、私有成员与参考实现正是公开检查器被欺骗的途径。"),
    Text("compute from the arguments of forward and from the weights alone",
         "只用 forward 的参数和权重进行计算"),
)  # fmt: skip
MEMBER = Reason(
    Text("Some members of a harmless module evaluate text, assign attributes or reach other modules.",
         "看似无害的模块中，有些成员会求值文本、写入属性或访问其他模块。"),
    Text("use the members that compute, such as functools.partial or operator.add, and name modules "
         "directly", "只使用用于计算的成员，如 functools.partial 或 operator.add，并直接写出模块名"),
)  # fmt: skip
CHANGE = Reason(
    Text("What is imported is shared with the checks: changing it changes the judgement.",
         "导入的对象与检查过程共用：修改它等于修改判定。"),
    Text("keep what you compute in variables and in self", "把计算结果保存在变量或 self 中"),
)  # fmt: skip
QUESTION = Reason(
    Text("Clocks, counters, modes and chance tell a check from a use.",
         "时钟、计数器、模式与随机数可用来区分检查与实际使用。"),
    Text("let the answer depend on the inputs and the weights only", "让结果只取决于输入和权重"),
)  # fmt: skip
FORM = Reason(
    Text("The candidate is the class ModelNew, and it stands on its own.",
         "候选是独立的 ModelNew 类。"),
    Text("define `class ModelNew` that does not use the problem's Model",
         "定义不使用题目 Model 的 `class ModelNew`"),
)  # fmt: skip
FALLBACK = Reason(
    Text("Behind a try another implementation can hide when the kernel fails.",
         "内核失败时，try 之后可能藏有另一种实现。"),
    Text("remove the try; check the arguments with if and raise", "去掉 try；用 if 检查参数并抛出错误"),
)  # fmt: skip
KERNEL = Reason(
    Text("A kernel that is not defined, not launched, or written in other words than those of its "
         "language is no kernel.",
         "没有定义、没有启动、或不是用其语言写成的内核不算内核。"),
    Text("define a kernel, launch it, and use only its language inside",
         "定义并启动内核，内部只使用该语言"),
)  # fmt: skip
C_SOURCE = Reason(
    Text("C code runs as it is: what it includes, names and declares is limited to computing.",
         "C 代码会直接运行，因此其包含、命名与声明仅限于计算。"),
    Text("write plain C that computes, with the headers that docs/kernel.md lists",
         "只写用于计算的普通 C 代码，并使用 docs/kernel.md 列出的头文件"),
)  # fmt: skip
