"""`torchstone kernel verify PROBLEM CANDIDATE` and `kernel generate PROBLEM`."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.errors import UsageError
from torchstone.core.options import option, unknown
from torchstone.core.text import Text
from torchstone.cli.common import CommonOptions
from torchstone.cli.generate import GenerateOptions, run_generate
from torchstone.cli.show import Progress, show
from torchstone.cli.torch_required import needs_torch

HELP = Text(
    en="compute kernels: verify a candidate gate by gate, generate one with a language model",
    zh="计算内核：逐关验证候选内核，或用语言模型生成内核",
)
ACTIONS = ("verify", "generate")
IMPLEMENTATIONS = ("triton", "numba", "c", "torch", "numpy", "swft")


@dataclass(frozen=True, slots=True)
class KernelOptions(GenerateOptions):
    """What to do with which problem and which candidate."""

    words: tuple[str, ...] = option(
        (),
        "verify PROBLEM CANDIDATE, or generate PROBLEM; PROBLEM is a .py file or the name of a "
        "shipped problem",
        "verify PROBLEM CANDIDATE 或 generate PROBLEM；PROBLEM 为 .py 文件或内置问题的名称",
        config=False, positional=True, metavar="ACTION",
    )  # fmt: skip
    impl: str = option(
        "", "what the candidate is written in", "候选内核的实现方式",
        choices=IMPLEMENTATIONS, config=False,
    )  # fmt: skip
    seeds: int = option(5, "seeds for every family of inputs", "每类输入的随机种子数")
    timeout: float = option(
        60.0,
        "seconds that one call may take",
        "一次调用可用的秒数",
        metavar="SECONDS",
    )


OPTIONS = KernelOptions
CONFIGURABLE = True


def run(options: KernelOptions, common: CommonOptions) -> int:
    action, *words = options.words or ("",)
    if action not in ACTIONS:
        raise unknown("kernel", action, list(ACTIONS))
    if action == "generate":
        return _generate(words, options, common)
    return _verify(words, options, common)


def _generate(words: list[str], options: KernelOptions, common: CommonOptions) -> int:
    if len(words) != 1 or not options.impl:
        given = f"{len(words)} problems" if len(words) != 1 else "no --impl"
        raise UsageError(
            "kernel generate", given,
            Text("a problem, --impl and --model", "一个问题、--impl 和 --model"),
            Text("for example: torchstone kernel generate relu --impl triton --model NAME",
                 "例如：torchstone kernel generate relu --impl triton --model 模型名"),
        )  # fmt: skip
    return run_generate(words[0], options.impl, options, common)


def _verify(words: list[str], options: KernelOptions, common: CommonOptions) -> int:
    if len(words) != 2 or not options.impl:
        given = f"{len(words)} paths" if len(words) != 2 else "no --impl"
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
            words[0], words[1], options.impl, seeds=options.seeds,
            timeout_seconds=options.timeout, progress=progress,
        )  # fmt: skip
    finally:
        progress.end()
    report = verdict.report()
    show(report, common)
    return 3 if report.failed else 0 if verdict.accepted else 1
