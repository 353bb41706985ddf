"""The options of `torchstone dryrun`."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.options import option


@dataclass(frozen=True, slots=True)
class DryRunOptions:
    """What is run, on how many ranks, within which limits."""

    target: str = option(
        "", "a script, which is RUN in a process of its own, or module:Model",
        "要运行的脚本（将在独立进程中真实执行），或 module:Model",
        positional=True, config=False, metavar="TARGET",
    )  # fmt: skip
    arguments: tuple[str, ...] = option(
        (), "arguments for the script, after --", "传给脚本的参数，写在 -- 之后",
        positional=True, config=False, split=False, metavar="ARGS",
    )  # fmt: skip
    input: tuple[str, ...] = option(
        (), "input of module:Model: 8,3,224,224:bf16, name=2,128:int64, or module:function; repeatable",
        "module:Model 的输入：8,3,224,224:bf16、name=2,128:int64 或 module:function；可重复",
        config=False, metavar="SHAPE", split=False,
    )  # fmt: skip
    train: bool = option(
        False, "module:Model: the backward pass too", "module:Model：同时运行反向传播", config=False
    )
    symbolic: str = option(
        "", "module:Model: names of axes that hold for all sizes, such as B,T",
        "module:Model：对任意大小都成立的轴名，如 B,T", config=False, metavar="AXES", listed=True,
    )  # fmt: skip
    batch_sizes: str = option(
        "", "run the script with loaders of these batch sizes too, such as 1,7",
        "另外以这些批大小运行脚本，如 1,7", metavar="SIZES", listed=True,
    )  # fmt: skip
    data: str = option(
        "", "samples of the datasets instead of their files: 3x224x224,:int64<1000, or name=SHAPE:DTYPE",
        "以规格代替数据集文件：3x224x224,:int64<1000，或 name=形状:数值格式", metavar="SAMPLE",
    )  # fmt: skip
    world_size: int = option(
        0, "simulate every rank of a job of this size", "模拟该规模任务的每一个 rank", metavar="N"
    )
    local_world_size: int = option(
        0, "ranks on one node; 8 by default", "单个节点上的 rank 数；默认为 8", metavar="N"
    )
    gpus: int = option(
        0,
        "number of GPUs to simulate; by default as many as the source names (cuda:1 needs two)",
        "所模拟的 GPU 数；默认按源码中出现的编号（cuda:1 需要两个）",
        metavar="N",
    )
    device: str = option(
        "h100-80g", "the accelerator to simulate, with its memory limit; cpu for none",
        "所模拟的加速器：以其显存判断能否放下；cpu 表示不使用", metavar="NAME",
    )  # fmt: skip
    max_steps: int = option(4, "limit of optimizer steps", "最多优化器步数", metavar="N")
    max_seconds: float = option(
        60.0, "time limit of one run, in seconds", "程序单次运行的最长秒数",
        metavar="SECONDS",
    )  # fmt: skip
    max_paths: int = option(
        4, "paths followed where the program branches on a tensor's value",
        "程序依张量取值分支时最多跟踪的路径数", metavar="N",
    )  # fmt: skip
    compile: bool = option(
        False, "report what torch.compile does: graph breaks and recompilations, with line and reason",
        "torch.compile 的结果：图中断与重新编译，含行号与原因", config=False,
    )  # fmt: skip
    annotate: bool = option(
        False, "show jaxtyping annotations for functions that have none, from the shapes seen, as a diff",
        "根据观察到的形状，为没有注解的函数生成 jaxtyping 注解，以 diff 显示", config=False,
    )  # fmt: skip
    write: bool = option(
        False, "with --annotate: write the annotations into the files",
        "与 --annotate 一起使用：把注解写入文件", config=False,
    )  # fmt: skip
    no_fixes: bool = option(
        False, "do not try fixes for what breaks", "不尝试修复发现的错误", config=False
    )
    python: str = option(
        "", "run with this environment: its interpreter, or its folder; by default the activated one or the "
        "project's .venv",
        "使用该环境运行：其解释器或文件夹；默认使用已激活的环境或项目的 .venv", config=False, metavar="PATH",
    )  # fmt: skip
    as_it_is: bool = option(
        False, "do not replace missing packages and data",
        "不为缺少的软件包和数据提供替代", config=False,
    )  # fmt: skip
    allow_write: bool = option(
        False, "let the script write files; else they go to a scratch folder that is removed",
        "允许脚本写文件；否则写入临时目录并在结束后删除", config=False,
    )  # fmt: skip
