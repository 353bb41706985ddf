"""What `torchstone cost` can be asked; loads no torch, because the help needs it."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.options import option

CONVENTIONS = ("flop", "mac", "fvcore", "palm", "megatron")
OPTIMIZERS = ("adamw", "adam", "momentum", "sgd", "none")


@dataclass(frozen=True, slots=True)
class CostOptions:
    """A target, what goes into it, and what is asked about it."""

    target: str = option(
        "",
        "file.py, file.py:build, package.module:build, hf:llama-3-8b, hf:config.json or timm:resnet50; "
        "naming code of yours imports and runs it",
        "file.py、file.py:build、package.module:build、hf:llama-3-8b、hf:config.json 或 timm:resnet50；"
        "指定您自己的代码会导入并运行它",
        config=False, positional=True, metavar="TARGET",
    )  # fmt: skip
    input: tuple[str, ...] = option(
        (), "an input: 8,3,224,224:bf16, ids=2,128:int64 or module:function; may be repeated",
        "一个输入：8,3,224,224:bf16、ids=2,128:int64 或 module:function；可重复",
        config=False, metavar="SHAPE", split=False,
    )  # fmt: skip
    train: bool = option(
        False, "count the backward and an optimizer step too", "同时统计反向与一步优化器",
        config=False,
    )  # fmt: skip
    infer: bool = option(
        False, "the forward alone, in evaluation mode (the default)",
        "只统计前向，评估模式（默认）", config=False,
    )  # fmt: skip
    optimizer: str = option(
        "adamw", "optimizer of --train", "--train 使用的优化器", choices=OPTIMIZERS
    )
    dtype: str = option(
        "", "number format of the weights, such as bf16", "权重的数值格式，如 bf16", metavar="DTYPE"
    )
    autocast: str = option(
        "", "run the forward under autocast in this format", "前向在该格式的 autocast 下运行",
        metavar="DTYPE",
    )  # fmt: skip
    lora: str = option(
        "", "with LoRA adapters: r=16 on all linear layers, or r=16,q_proj,v_proj",
        "使用 LoRA：r=16（全部线性层），或 r=16,q_proj,v_proj", metavar="R", config=False,
    )  # fmt: skip
    quant: str = option(
        "", "with the weights of linear layers stored in nf4, int4, int8 or fp8",
        "线性层权重以 nf4、int4、int8 或 fp8 存储", metavar="FORMAT", config=False,
    )  # fmt: skip
    checkpoint: bool = option(
        False, "with activation checkpointing, where the model has it",
        "启用激活检查点（若模型支持）",
    )  # fmt: skip
    batch: str = option(
        "1", "batch sizes, such as 1,8,32: the first is reported in full",
        "批大小，如 1,8,32：第一个给出完整报告", metavar="SIZES", listed=True,
    )  # fmt: skip
    seq: str = option(
        "", "sequence lengths, such as 1k,8k,128k (1k = 1024)",
        "序列长度，如 1k,8k,128k（1k = 1024）", metavar="SIZES", listed=True,
    )  # fmt: skip
    context: str = option(
        "", "count one decoded token after so many cached ones, such as 1k,8k",
        "统计已缓存这么多 token 之后解码一个 token 的代价，如 1k,8k", metavar="SIZES", listed=True,
    )  # fmt: skip
    device: str = option(
        "", "devices to estimate time and memory for, such as h100,a100,910b",
        "要估算时间与内存的设备，如 h100,a100,910b", metavar="NAMES", listed=True,
    )  # fmt: skip
    devices: str = option(
        "", "a TOML file with devices of your own", "包含自定义设备的 TOML 文件", metavar="FILE"
    )
    plan: str = option(
        "", "parallel plan, such as data=8,zero=3,tensor=2,checkpoint=full",
        "并行方案，如 data=8,zero=3,tensor=2,checkpoint=full", metavar="PLAN",
    )  # fmt: skip
    step_seconds: float = option(
        0.0, "a measured step time: MFU and HFU on --device", "实测的单步时间：计算 --device 上的 MFU 与 HFU",
        config=False, metavar="SECONDS",
    )  # fmt: skip
    count: int = option(
        1, "number of devices of the measured step", "实测单步所用的设备数", config=False
    )
    stages: str = option(
        "", "stages: decoder-only, encoder-decoder, vision-language, or a file of name = [patterns]",
        "阶段：decoder-only、encoder-decoder、vision-language，或形如 名称 = [模式] 的文件",
        metavar="NAME",
    )  # fmt: skip
    convention: str = option(
        "flop", "how FLOPs are counted", "FLOPs 的统计口径", choices=CONVENTIONS
    )
    attention: str = option(
        "full", "count attention in full, or only what a causal mask leaves",
        "注意力按完整计算，或去掉因果掩码省去的部分", choices=("full", "causal"),
    )  # fmt: skip
    no_replay: bool = option(
        False, "run every layer, also those that are the same", "逐层运行，相同的层也不复用"
    )
    no_fuse: bool = option(
        False, "attention as plain matrix products, not as a flash kernel",
        "注意力按普通矩阵乘法而非 flash 内核统计",
    )  # fmt: skip
