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
ANNOTATION = Rule(
    "DR203", "annotation-violated", Severity.HIGH,
    Text("a tensor does not have the annotated shape or dtype", "张量的形状或数值格式与注解不符"),
    Text(
        "the annotation and the program do not say the same: one of them is wrong",
        "注解与程序不一致：其中之一有误",
    ),
)  # fmt: skip
KINDS = Rule(
    "DR204",
    "loss-of-other-numbers",
    Severity.HIGH,
    Text(
        "a loss is given another kind of numbers than it takes",
        "损失函数得到的数值种类与其要求不符",
    ),
    Text(
        "the loss is a number and goes down, but it is not the loss that was meant: gradients are small or wrong",
        "损失仍是一个会下降的数，但并非所要的损失：梯度偏小或有误",
    ),
    "meaning",
)
CUT = Rule(
    "DR205",
    "graph-is-cut",
    Severity.HIGH,
    Text("parameters of the optimizer never get a gradient", "优化器中的参数从未得到梯度"),
    Text(
        "the value has no way back to the parameters behind it: they keep the values they began with",
        "该值与其后的参数之间没有反向路径：这些参数始终保持初始值",
    ),
    "meaning",
)
LEAK = Rule(
    "DR206",
    "evaluates-training-rows",
    Severity.HIGH,
    Text("rows that are trained on are evaluated too", "用于训练的行也用于评估"),
    Text(
        "the result of the evaluation is too good: the model has seen these rows",
        "评估结果偏高：模型已见过这些行",
    ),
    "meaning",
)
UNTRAINED = Rule(
    "DR207",
    "trained-by-nobody",
    Severity.HIGH,
    Text(
        "parameters get a gradient, and no optimizer has them", "参数得到梯度，却没有优化器持有它们"
    ),
    Text(
        "they keep the values they began with, while the layers around them learn",
        "它们始终保持初始值，而其周围的层在学习",
    ),
    "meaning",
)
MEMORY = Rule(
    "DR301", "does-not-fit", Severity.HIGH,
    Text("the step needs more memory than the device has", "单步所需显存超过设备容量"),
    Text("the first steps will end with an out-of-memory error", "最初几步就会因显存不足而终止"),
    "memory",
)  # fmt: skip
GRAPH_BREAK = Rule(
    "DR401", "graph-break", Severity.MEDIUM,
    Text("torch.compile cuts the graph here", "torch.compile 在此处中断计算图"),
    Text(
        "what comes before and after is compiled apart: values go back to Python in between, and "
        "nothing is fused across",
        "前后两段分别编译：中间需返回 Python，且无法跨段融合",
    ),
    "compile",
)  # fmt: skip
RECOMPILED = Rule(
    "DR402", "recompilation", Severity.MEDIUM,
    Text("a later call compiles this function again", "后续调用会重新编译该函数"),
    Text(
        "the call waits for the compiler, seconds to minutes; after eight times torch.compile gives up",
        "该调用要等待编译，数秒到数分钟；超过八次后 torch.compile 会放弃编译",
    ),
    "compile",
)  # fmt: skip
NO_FULL_GRAPH = Rule(
    "DR403",
    "no-full-graph",
    Severity.HIGH,
    Text(
        "torch.compile(fullgraph=True) cannot make one graph",
        "torch.compile(fullgraph=True) 无法得到单一计算图",
    ),
    Text(
        "with fullgraph=True a graph break is an error: the first call raises",
        "使用 fullgraph=True 时图中断即为错误：首次调用就会抛出异常",
    ),
    "compile",
)
CONSTRAINT = Rule(
    "DR502", "size-constraint", Severity.MEDIUM,
    Text("the model does not hold for all sizes", "模型并非对所有大小都成立"),
    Text("other sizes than these are refused", "其他大小会被拒绝"),
)  # fmt: skip
RANK_RAISES = Rule(
    "DR600", "all-ranks-raise", Severity.HIGH,
    Text("all ranks raise an exception", "所有 rank 都抛出异常"),
    Text("the program stops here on every rank", "程序在每个 rank 上都会在此停止"),
    "ranks",
)  # fmt: skip
DIVERGED = Rule(
    "DR601", "collectives-diverge", Severity.HIGH,
    Text("ranks do not call the same collective", "各 rank 调用的集合通信不一致"),
    Text(
        "a collective waits for every rank of its group; here the ranks go different ways, and the "
        "job hangs until the watchdog ends it",
        "集合通信要等待组内所有 rank；此处各 rank 走向不同，任务会一直挂起直到超时",
    ),
    "ranks",
)  # fmt: skip
UNEVEN = Rule(
    "DR602", "collective-arguments-differ", Severity.HIGH,
    Text("ranks call one collective with different arguments", "各 rank 以不同参数调用同一集合通信"),
    Text(
        "shape, dtype, root and reduction must be equal on all ranks: NCCL does not check them, and "
        "hangs or mixes up data",
        "形状、数值格式、root 与归约方式须在所有 rank 上一致：NCCL 不做检查，会挂起或弄乱数据",
    ),
    "ranks",
)  # fmt: skip
EARLY_EXIT = Rule(
    "DR603", "rank-leaves-early", Severity.HIGH,
    Text("a rank has ended while others wait for it", "某个 rank 已结束，而其他 rank 仍在等待它"),
    Text("the others wait until the watchdog ends the job", "其他 rank 会一直等待，直到超时"),
    "ranks",
)  # fmt: skip
DEADLOCK = Rule(
    "DR604", "deadlock", Severity.HIGH,
    Text("ranks wait for each other", "各 rank 相互等待"),
    Text("none of them can go on", "没有一个能继续"),
    "ranks",
)  # fmt: skip
GROUP = Rule(
    "DR605", "group-on-some-ranks", Severity.HIGH,
    Text("a process group is not made alike on all ranks", "进程组未在所有 rank 上以相同方式创建"),
    Text(
        "every rank must call new_group for every group, in the same order, members or not",
        "每个 rank 都必须以相同顺序为每个组调用 new_group，无论是否为其成员",
    ),
    "ranks",
)  # fmt: skip
UNMATCHED = Rule(
    "DR606", "unmatched-send", Severity.HIGH,
    Text("a send or a receive has no partner", "发送或接收没有对应方"),
    Text("it is never completed", "它永远无法完成"),
    "ranks",
)  # fmt: skip
UNAWAITED = Rule(
    "DR607", "unawaited-work", Severity.MEDIUM,
    Text("asynchronous work is never waited for", "异步通信从未被等待"),
    Text(
        "its result may be read before it is there, and its buffer may be reused while it is in use",
        "结果可能在到达之前就被读取，缓冲区也可能在使用中被重用",
    ),
    "ranks",
)  # fmt: skip
DRIFT = Rule(
    "DR608", "replicas-drift", Severity.HIGH,
    Text("replicas are updated with gradients of their own", "各副本以各自的梯度更新"),
    Text(
        "the parameters were made equal on all ranks, and their gradients were not reduced before the "
        "step: the replicas grow apart without an error",
        "参数曾在所有 rank 上同步，但更新前梯度没有归约：各副本会无声地偏离",
    ),
    "ranks",
)  # fmt: skip
REPLICAS = Rule(
    "DR609", "replicas-differ", Severity.HIGH,
    Text("parameters that should be equal differ between ranks", "本应相同的参数在各 rank 上不同"),
    Text(
        "these ranks reduce the gradients of one model, but hold different weights: each gradient is "
        "taken at other weights than those it changes, and no error is raised",
        "这些 rank 归约同一模型的梯度，却持有不同的权重：梯度与其更新的权重并不对应，且不会报错",
    ),
    "ranks",
)  # fmt: skip
BUFFERS = Rule(
    "DR610", "buffers-differ", Severity.MEDIUM,
    Text("buffers of replicas differ when the program ends", "程序结束时各副本的缓冲区不同"),
    Text(
        "every rank has the statistics of its own data: evaluation gives another result on each, and "
        "a checkpoint keeps those of one rank alone",
        "每个 rank 只统计了自己的数据：各 rank 的评估结果不同，检查点也只保存了其中一份",
    ),
    "ranks",
)  # fmt: skip
WRONG_GROUP = Rule(
    "DR612",
    "wrong-group",
    Severity.HIGH,
    Text("gradients are reduced over the wrong group", "梯度在错误的进程组上归约"),
    Text(
        "the ranks that hold the same parameters do not share their gradients, and those that share them hold other "
        "parameters: the replicas grow apart without an error",
        "持有相同参数的 rank 没有共享梯度，共享梯度的 rank 却持有不同的参数：各副本会无声地偏离",
    ),
    "ranks",
)
RACE = Rule(
    "DR611",
    "buffer-in-use",
    Severity.HIGH,
    Text("a buffer is used while a collective works on it", "集合通信进行期间使用了其缓冲区"),
    Text(
        "an asynchronous collective reads and writes its buffers until wait(): what is read or sent is sometimes "
        "the old value, sometimes the new one",
        "异步集合通信在 wait() 之前会读写其缓冲区：读取或发送的值时而是旧值，时而是新值",
    ),
    "ranks",
)
RANKS = (
    RANK_RAISES, DIVERGED, UNEVEN, EARLY_EXIT, DEADLOCK, GROUP, UNMATCHED, UNAWAITED, DRIFT,
    REPLICAS, BUFFERS, RACE, WRONG_GROUP,
)  # fmt: skip

SINGLE_PROCESS = (
    REFUSED, RAISED, IN_PLACE, DEVICES, DTYPES, REMAINDER, BROADCAST, FLOAT64, ANNOTATION,
    KINDS, CUT, LEAK, MEMORY, NO_FULL_GRAPH, GRAPH_BREAK, RECOMPILED, CONSTRAINT,
)  # fmt: skip
