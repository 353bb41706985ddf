"""`torchstone kernel verify PROBLEM CANDIDATE` and `kernel generate PROBLEM`."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.cli.command import Subcommand
from torchstone.cli.common import CommonOptions
from torchstone.cli.generate import IMPLEMENTATIONS, NO_IMPL, GenerateOptions, run_generate
from torchstone.cli.show import Progress, show
from torchstone.cli.torch_required import needs_torch
from torchstone.core.errors import UsageError
from torchstone.core.options import option
from torchstone.core.text import Text

HELP = Text(
    en="compute kernels: verify a candidate gate by gate, generate one with a language model",
    zh="计算内核：逐关验证候选内核，或用语言模型生成内核",
)
FORMATS = ("text", "json", "markdown", "html", "agent")


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Which candidate is judged on which problem."""

    words: tuple[str, ...] = option(
        (), "a problem (a .py file or the name of a shipped one) and a candidate (a .py file)",
        "问题（.py 文件或内置问题的名称）与候选内核（.py 文件）",
        config=False, positional=True, metavar="PROBLEM CANDIDATE",
    )  # fmt: skip
    impl: str = option(
        "", "what the candidate is written in", "候选内核的实现方式",
        choices=IMPLEMENTATIONS, config=False,
    )  # fmt: skip
    seeds: int = option(5, "seeds for every family of inputs", "每类输入的随机种子数")
    timeout: float = option(
        60.0,
        "seconds of CPU time that one call may take",
        "一次调用可用的 CPU 秒数",
        metavar="SECONDS",
    )
    memory: str = option(
        "", "memory that the verdict may use, such as 12G (half of what is free by default)",
        "验证可使用的内存，例如 12G（默认为空闲内存的一半）", metavar="SIZE",
    )  # fmt: skip


OPTIONS = VerifyOptions
CONFIGURABLE = True


def _verify(options: VerifyOptions, common: CommonOptions) -> int:
    if len(options.words) != 2 or not options.impl:
        count = len(options.words)
        given = Text(f"{count} paths", f"{count} 个路径") if count != 2 else NO_IMPL
        raise UsageError(
            "kernel verify", given,
            Text("a problem, a candidate and --impl", "一个问题、一个候选和 --impl"),
            Text("for example: torchstone kernel verify relu my_relu.py --impl triton",
                 "例如：torchstone kernel verify relu my_relu.py --impl triton"),
        )  # fmt: skip
    if options.impl != "swft":
        needs_torch("kernel verify")
    from torchstone.kernels.verifier import verify

    progress = Progress(common.lang, common.quiet, Text("verifying", "验证中"))
    try:
        verdict = verify(
            *options.words, options.impl, seeds=options.seeds,
            timeout_seconds=options.timeout, memory=options.memory, progress=progress,
        )  # fmt: skip
    finally:
        progress.end()
    report = verdict.report()
    show(report, common)
    return 3 if report.failed else verdict.exit_code


SUBCOMMANDS = {
    "verify": Subcommand(
        "kernel verify",
        Text("is this kernel right? A verdict, gate by gate", "该内核是否正确？逐关给出结论"),
        VerifyOptions,
        _verify,
    ),
    "generate": Subcommand(
        "kernel generate",
        Text(
            "let a language model write a kernel; every step is recorded",
            "用语言模型编写内核，每一步都会记录",
        ),
        GenerateOptions,
        run_generate,
    ),
}
