"""The rules of dry runs: what each finding is called and how bad it is."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.finding import Severity
from torchstone.core.report import RuleInfo
from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding."""

    id: str
    name: str
    severity: Severity
    summary: Text
    why: Text
    group: str = "shapes"

    def info(self) -> RuleInfo:
        return RuleInfo(self.id, self.name, self.group, self.severity, self.summary, self.why)


REFUSED = Rule(
    "DR101", "refused-call", Severity.HIGH,
    Text("torch refuses this call", "torch 拒绝该调用"),
    Text("the program stops here, on real tensors too", "程序会在此停止，真实张量也一样"),
)  # fmt: skip
RAISED = Rule(
    "DR102", "program-raises", Severity.HIGH,
    Text("the program raises an exception", "程序抛出异常"),
    Text("the program stops here", "程序会在此停止"),
)  # fmt: skip
IN_PLACE = Rule(
    "DR103", "in-place-before-backward", Severity.HIGH,
    Text("a tensor that the backward needs is overwritten", "反向传播所需的张量被覆盖"),
    Text(
        "autograd saved this tensor for the backward; after an in-place write it refuses to use it",
        "autograd 为反向保存了该张量；就地写入之后它拒绝使用",
    ),
)  # fmt: skip
DEVICES = Rule(
    "DR104", "mixed-devices", Severity.HIGH,
    Text("tensors on different devices in one call", "同一调用中的张量位于不同设备"),
    Text("an operator needs its tensors on one device", "算子要求张量位于同一设备"),
)  # fmt: skip
DTYPES = Rule(
    "DR105", "mixed-dtypes", Severity.HIGH,
    Text("number formats that do not go together", "数值格式不匹配"),
    Text("this operator does not convert number formats", "该算子不会自动转换数值格式"),
)  # fmt: skip
REMAINDER = Rule(
    "DR106", "remainder-batch", Severity.HIGH,
    Text("the last, smaller batch breaks the program", "最后一个较小的批次使程序中断"),
    Text(
        "the number of samples is no multiple of the batch size, so that the last batch of an epoch "
        "is smaller; the program fails at the end of the first epoch",
        "样本数不是批大小的整数倍，每个 epoch 的最后一批更小；程序会在第一个 epoch 结束时失败",
    ),
)  # fmt: skip
BROADCAST = Rule(
    "DR201", "silent-broadcast", Severity.HIGH,
    Text("two shapes are broadcast against each other", "两个形状被相互广播"),
    Text(
        "both are expanded: (B,) with (B, 1) gives (B, B), every sample against every other",
        "双方都被扩展：(B,) 与 (B, 1) 得到 (B, B)，每个样本都与其他样本配对",
    ),
)  # fmt: skip
FLOAT64 = Rule(
    "DR202", "promoted-to-float64", Severity.MEDIUM,
    Text("a float64 tensor enters the model's arithmetic", "float64 张量进入了模型计算"),
    Text(
        "everything behind it is computed in float64: twice the memory, and many times slower on a GPU",
        "其后的计算都以 float64 进行：内存翻倍，在 GPU 上慢许多倍",
    ),
)  # fmt: skip
MEMORY = Rule(
    "DR301", "does-not-fit", Severity.HIGH,
    Text("the step needs more memory than the device has", "单步所需显存超过设备容量"),
    Text("the first steps will end with an out-of-memory error", "最初几步就会因显存不足而终止"),
    "memory",
)  # fmt: skip
GRAPH_BREAK = Rule(
    "DR401", "graph-break", Severity.MEDIUM,
    Text("torch.compile breaks the graph here", "torch.compile 在此处中断计算图"),
    Text("code between the pieces runs eagerly, without fusion", "片段之间的代码以 eager 方式运行，无法融合"),
    "compile",
)  # fmt: skip
RECOMPILE = Rule(
    "DR402", "recompilation", Severity.MEDIUM,
    Text("torch.compile compiles this again", "torch.compile 在此重新编译"),
    Text("each compilation takes seconds to minutes on a real job", "在真实任务中每次编译需数秒到数分钟"),
    "compile",
)  # fmt: skip
ANNOTATION = Rule(
    "DR501", "annotation-mismatch", Severity.HIGH,
    Text("a tensor does not have the shape that its annotation says", "张量形状与注解不符"),
    Text("the annotation or the code is wrong", "注解或代码有误"),
)  # fmt: skip
CONSTRAINT = Rule(
    "DR502", "size-constraint", Severity.MEDIUM,
    Text("the model does not hold for all sizes", "模型并非对所有大小都成立"),
    Text("other sizes than these are refused", "其他大小会被拒绝"),
)  # fmt: skip

SINGLE_PROCESS = (
    REFUSED, RAISED, IN_PLACE, DEVICES, DTYPES, REMAINDER, BROADCAST, FLOAT64, MEMORY,
    GRAPH_BREAK, RECOMPILE, ANNOTATION, CONSTRAINT,
)  # fmt: skip
