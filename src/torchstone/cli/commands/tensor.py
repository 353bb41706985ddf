"""`torchstone tensor FILE`: what low precision does to the tensors of a file."""

from __future__ import annotations

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import Progress, show
from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.tensors.options import TensorOptions

HELP = Text(
    en="tensors and checkpoints: ranges, formats, what is lost in fp16, bf16, fp8, int8 …, and what helps",
    zh="张量与检查点：数值范围、格式、在 fp16、bf16、fp8、int8 等格式中的损失与对策",
)
OPTIONS = TensorOptions
CONFIGURABLE = True


def run(options: TensorOptions, common: CommonOptions) -> int:
    if not options.file:
        raise UsageError(
            "tensor", "no file", Text("a file of tensors", "张量文件"),
            Text("for example: torchstone tensor model.safetensors",
                 "例如：torchstone tensor model.safetensors"),
        )  # fmt: skip
    needs_torch("tensor")
    from torchstone.tensors.files.answer import answer_for_file

    progress = Progress(common.lang, common.quiet, Text("reading", "读取中"))
    try:
        report = answer_for_file(options, common.lang, progress)
    finally:
        progress.end()
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0
