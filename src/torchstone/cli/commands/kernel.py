"""`torchstone kernel verify [PROBLEM] CANDIDATE`, `kernel problems` and `kernel generate PROBLEM`."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.cli.command import Subcommand
from torchstone.cli.common import CommonOptions
from torchstone.cli.generate import IMPLEMENTATIONS, GenerateOptions, run_generate
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import Progress, show
from torchstone.core.errors import UsageError
from torchstone.core.options import option
from torchstone.core.text import Text

HELP = Text(
    en="compute kernels: verify a candidate gate by gate, generate one with a language model",
    zh="计算内核：逐关验证候选内核，或用语言模型生成内核",
)
NOT_RUN_HERE = ("cuda", "hip", "cute", "tilelang", "thunderkittens")
"""Languages that are recognised and answered with what is missing."""
FORMATS = ("text", "json", "markdown", "html", "agent")


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """Which candidate is judged on which problem."""

    words: tuple[str, ...] = option(
        (), "a problem (a .py file or the name of a shipped one) and a candidate (a .py file, or FILE.py:FUNCTION for a "
        "function of a script); a candidate alone has its problem in the same file or beside it",
        "问题（.py 文件或内置问题的名称）与候选内核（.py 文件，或以 FILE.py:函数名 指定脚本中的函数）；只给候选时，其问题在同一文件中或旁边",
        config=False, positional=True, metavar="[PROBLEM] CANDIDATE",
    )  # fmt: skip
    impl: str = option(
        "", "what the candidate is written in (by default what it imports says so)",
        "候选内核的实现方式（默认由其导入判断）", choices=(*IMPLEMENTATIONS, *NOT_RUN_HERE), config=False,
    )  # fmt: skip
    seeds: int = option(5, "seeds for every family of inputs", "每类输入的随机种子数")
    timeout: float = option(
        60.0,
        "seconds of CPU time that one call may take",
        "一次调用可用的 CPU 秒数",
        metavar="SECONDS",
    )
    layouts: str = option(
        "any", "memory layouts of the inputs: any, or only the problem's own (for kernels that are documented to take "
        "contiguous memory alone)",
        "输入的内存布局：任意，或仅问题自身的布局（适用于明确只接受连续内存的内核）", choices=("any", "own"),
    )  # fmt: skip
    sizes: str = option(
        "any", "sizes of the inputs: any that the problem takes, or only its own (for kernels that are documented to take "
        "certain sizes alone)",
        "输入的尺寸：问题可接受的任意尺寸，或仅问题自身的尺寸（适用于明确只接受特定尺寸的内核）", choices=("any", "own"),
    )  # fmt: skip
    memory: str = option(
        "", "memory that the verdict may use, such as 12G (half of what is free by default)",
        "验证可使用的内存，例如 12G（默认为空闲内存的一半）", metavar="SIZE",
    )  # fmt: skip


OPTIONS = VerifyOptions
CONFIGURABLE = True


def _verify(options: VerifyOptions, common: CommonOptions) -> int:
    if not 1 <= len(options.words) <= 2:
        count = len(options.words)
        raise UsageError(
            "kernel verify", Text(f"{count} paths", f"{count} 个路径"),
            Text("a candidate, or a problem and a candidate", "一个候选，或一个问题和一个候选"),
            Text("for example: torchstone kernel verify relu my_relu.py --impl triton",
                 "例如：torchstone kernel verify relu my_relu.py --impl triton"),
        )  # fmt: skip
    from torchstone.kernels.candidate import ELSEWHERE, recognised_language
    from torchstone.kernels.problem import read_source
    from torchstone.kernels.script import split_function

    word = options.words[-1]
    path = split_function(word)[0]
    language = options.impl or recognised_language(read_source(path))
    if language in ELSEWHERE:
        from torchstone.kernels.verdicts.elsewhere import report_elsewhere

        show(report_elsewhere(path.stem, language), common)
        return 3
    return _judge(word, language, options, common)


def _judge(word: str, language: str, options: VerifyOptions, common: CommonOptions) -> int:
    from torchstone.kernels.finding import problem_beside
    from torchstone.kernels.problem import load_problem
    from torchstone.kernels.script import split_function

    given = options.words[0]
    problem = (
        load_problem(given) if len(options.words) == 2 else problem_beside(*split_function(word))
    )
    if language != "swft":
        needs_torch("kernel verify")
    from torchstone.kernels.verifier import verify

    progress = Progress(common.lang, common.quiet, Text("verifying", "验证中"))
    try:
        verdict = verify(
            problem, word, language, seeds=options.seeds, timeout_seconds=options.timeout,
            memory=options.memory, layouts=options.layouts, sizes=options.sizes, progress=progress,
        )  # fmt: skip
    finally:
        progress.end()
    report = verdict.report()
    show(report, common)
    return 3 if report.failed else verdict.exit_code


@dataclass(frozen=True, slots=True)
class ProblemsOptions:
    """Nothing to choose."""


def _list_problems(_: ProblemsOptions, common: CommonOptions) -> int:
    """The problems that come with the package, each with the first line of what it says of itself."""
    import ast

    from torchstone.core.answer import Answer
    from torchstone.core.report import Report
    from torchstone.kernels.problem import load_problem, shipped_problems

    rows = []
    for name in shipped_problems():
        said = ast.get_docstring(ast.parse(load_problem(name).source)) or ""
        line = f"{name}: {next(iter(said.splitlines()), '')}"
        rows.append(Text(line, line))
    count = len(rows)
    headline = Text(f"{count} problems come with the package", f"随包提供 {count} 个问题")
    todo = "torchstone kernel verify relu my_relu.py"
    answer = Answer(headline=headline, state="plain", lines=tuple(rows), next=(todo,))
    show(Report(tool="kernel", answer=answer), common)
    return 0


SUBCOMMANDS = {
    "verify": Subcommand(
        "kernel verify",
        Text("is this kernel right? A verdict, gate by gate", "该内核是否正确？逐关给出结论"),
        VerifyOptions,
        _verify,
    ),
    "problems": Subcommand(
        "kernel problems",
        Text("the problems that come with the package", "随包提供的问题"),
        ProblemsOptions,
        _list_problems,
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
