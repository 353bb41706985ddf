"""Second ways to fix what rules find: what a reviewer would weigh against the rule's own fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torchstone.core.text import Text


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way, with what speaks for and against it."""

    kind: Literal["template", "configuration", "by hand"]
    title: Text
    pros: tuple[Text, ...]
    cons: tuple[Text, ...]
    risk: Literal["low", "medium", "high"] = "medium"


def _way(kind: Literal["template", "configuration", "by hand"], title: tuple[str, str],
         pro: tuple[str, str], con: tuple[str, str],
         risk: Literal["low", "medium", "high"] = "medium") -> Alternative:  # fmt: skip
    return Alternative(kind, Text(*title), (Text(*pro),), (Text(*con),), risk)


ALTERNATIVES: dict[str, tuple[Alternative, ...]] = {
    "TS101": (_way(
        "configuration", ("run the model under torch.autocast and keep the weights in float32",
                          "使用 torch.autocast 运行模型，权重保持 float32"),
        ("weights keep their small updates", "权重不会丢失微小更新"),
        ("needs a GradScaler for float16", "float16 需要配合 GradScaler")),),
    "TS102": (_way(
        "template", ("binary_cross_entropy_with_logits on the logits, without the sigmoid",
                     "去掉 sigmoid，直接对 logits 使用 binary_cross_entropy_with_logits"),
        ("stable in half precision, one kernel less", "半精度下稳定，且少一个算子"),
        ("callers that read probabilities need a sigmoid of their own",
         "读取概率的调用方需自行加 sigmoid"), "low"),),
    "TS107": (_way(
        "configuration", ("bfloat16 autocast without a scaler", "改用 bfloat16 autocast，不再需要 scaler"),
        ("no loss scale that could be forgotten", "不存在可能遗漏的损失缩放"),
        ("needs hardware with bfloat16; three digits fewer", "需要支持 bfloat16 的硬件，尾数精度更低")),),
    "TS201": (_way(
        "template", ("optimizer.zero_grad(set_to_none=True) right after optimizer.step()",
                     "在 optimizer.step() 之后立即调用 optimizer.zero_grad(set_to_none=True)"),
        ("also frees the gradients before the next forward pass", "可在下一次前向前释放梯度内存"),
        ("an exception between the two leaves gradients behind", "两者之间若抛出异常会残留梯度"), "low"),),
    "TS206": (_way(
        "template", ("an nn.Dropout module in __init__", "在 __init__ 中使用 nn.Dropout 模块"),
        ("follows model.eval() by itself, shows in print(model)", "自动跟随 model.eval()，并在 print(model) 中可见"),
        ("one more attribute to name", "多一个需要命名的属性"), "low"),),
    "TS301": (_way(
        "template", ("keep the loss on the device and read it every N steps",
                     "将损失保留在设备上，每 N 步读取一次"),
        ("one wait in N steps", "每 N 步只等待一次"),
        ("the progress line is N steps late", "进度显示会滞后 N 步"), "low"),),
    "TS305": (_way(
        "configuration", ("as many workers as there are processors for each rank",
                          "每个 rank 的 worker 数设为可用处理器数"),
        ("loading overlaps with the step", "数据加载与训练步重叠"),
        ("each worker holds its own copy of the dataset object", "每个 worker 持有一份数据集对象"), "low"),),
    "TS311": (_way(
        "template", ("torch.inference_mode() for the whole evaluation function",
                     "对整个评估函数使用 torch.inference_mode()"),
        ("faster than no_grad, views are not tracked", "比 no_grad 更快，不追踪视图"),
        ("its tensors cannot be used in training later", "其张量之后不能用于训练"), "low"),),
    "TS314": (_way(
        "template", ("a running sum of loss.detach() instead of a list",
                     "用 loss.detach() 的累加值代替列表"),
        ("constant memory", "内存占用恒定"), ("single values are gone", "不再保留各步数值"), "low"),),
    "TS401": (_way(
        "template", ("keep the collective on every rank and guard only what is printed or saved",
                     "让所有 rank 执行集合通信，仅对打印或保存加判断"),
        ("all ranks stay in step", "各 rank 保持一致"),
        ("every rank pays for the reduction", "每个 rank 都要承担归约开销"), "low"),),
    "TS404": (_way(
        "configuration", ("a stateful sampler of the training framework", "使用训练框架自带的有状态采样器"),
        ("resumes in mid-epoch", "可在 epoch 中途恢复"), ("another dependency", "多一个依赖")),),
    "TS405": (_way(
        "configuration", ("torch.distributed.checkpoint, where every rank writes its share",
                          "使用 torch.distributed.checkpoint，各 rank 写入各自部分"),
        ("scales to sharded models", "可扩展至分片模型"), ("another file format", "文件格式不同")),),
}  # fmt: skip
