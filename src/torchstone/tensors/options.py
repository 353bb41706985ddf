"""What `torchstone tensor` can be asked; loads no torch, because the help needs it."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.options import option


@dataclass(frozen=True, slots=True)
class TensorOptions:
    """A file of tensors and what is asked about it."""

    file: str = option(
        "",
        ".npy, .npz, .safetensors, .pt, .pth, .bin, .ckpt, .gguf, an .index.json of shards, or a folder; "
        "nothing in it is executed",
        ".npy、.npz、.safetensors、.pt、.pth、.bin、.ckpt、.gguf、分片索引 .index.json 或文件夹；"
        "其中的内容不会被执行",
        config=False, positional=True, metavar="FILE",
    )  # fmt: skip
    name: str = option(
        "", "analyse this tensor of the file in full; part of its name is enough",
        "完整分析文件中的这个张量；可只写名称的一部分", config=False, metavar="NAME",
    )  # fmt: skip
    against: str = option(
        "", "the checkpoint that FILE was quantised from: stored values are compared with it",
        "FILE 量化之前的检查点：将存储值与其比较", config=False, metavar="FILE",
    )  # fmt: skip
    axis: int | None = option(
        None, "the axis whose indices are compared; found by default",
        "要比较其各下标的轴；默认自动查找", config=False, metavar="AXIS",
    )  # fmt: skip
    formats: tuple[str, ...] = option(
        (), "number formats to try, such as bf16,e4m3,nvfp4; all by default",
        "要尝试的数值格式，如 bf16,e4m3,nvfp4；默认全部", metavar="NAMES",
    )  # fmt: skip
    granularity: tuple[str, ...] = option(
        (), "what may share a scale: tensor, row, column, 128x128, 1x128, block32, block16",
        "共享缩放的粒度：tensor、row、column、128x128、1x128、block32、block16", metavar="NAMES",
    )  # fmt: skip
    exact: bool = option(
        False, "compute errors from every value instead of a histogram or a sample",
        "用全部数值计算误差，而非直方图或抽样",
    )  # fmt: skip
