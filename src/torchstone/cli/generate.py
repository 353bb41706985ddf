"""`torchstone kernel generate PROBLEM`: a kernel from a language model, verified and recorded."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.show import Progress, show
from torchstone.core.errors import UsageError
from torchstone.core.limits import check_count, check_seconds
from torchstone.core.options import option
from torchstone.core.text import Text

IMPLEMENTATIONS = ("triton", "numba", "c", "torch", "numpy", "swft")
NO_IMPL = Text("no --impl", "缺少 --impl")


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """Which model writes the kernel, within which limits, and where it is recorded."""

    words: tuple[str, ...] = option(
        (), "a problem: a .py file or the name of a shipped one",
        "问题：.py 文件或内置问题的名称", config=False, positional=True, metavar="PROBLEM",
    )  # fmt: skip
    impl: str = option(
        "", "what the kernel is written in", "内核的实现方式",
        choices=IMPLEMENTATIONS, config=False,
    )  # fmt: skip

    model: str = option("", "the model that writes", "编写内核的模型", config=False)
    base_url: str = option(
        "", "address of an OpenAI-compatible server",
        "OpenAI 兼容服务地址", config=False, metavar="URL",
    )  # fmt: skip
    provider: str = option(
        "http", "how the model is reached", "访问模型的方式",
        choices=("http", "openai", "anthropic"), config=False,
    )  # fmt: skip
    log_dir: str = option(
        "torchstone-runs", "the record goes here, one folder for each problem",
        "记录存放处，每个问题一个文件夹", config=False, metavar="DIR",
    )  # fmt: skip
    max_steps: int = option(10, "steps at most", "最多步数", config=False)
    max_tokens: int = option(
        200_000, "tokens at most, asked and answered",
        "输入与输出 token 总数上限", config=False,
    )  # fmt: skip
    max_seconds: float = option(3600.0, "seconds at most", "最长秒数", config=False)
    answer_tokens: int = option(
        8192,
        "tokens that one answer may have",
        "单次回答的 token 上限",
        config=False,
    )
    temperature: float = option(0.0, "temperature of the model", "模型温度", config=False)
    model_seed: int = option(0, "seed of the model", "模型的随机种子", config=False)
    task: str = option(
        "", "name of the task; by default the next number",
        "任务名；默认取下一个编号", config=False,
    )  # fmt: skip
    allow_unconfined: bool = option(
        False, "run a model's code even where this system cannot confine it",
        "即使本系统无法隔离，也运行模型编写的代码", config=False,
    )  # fmt: skip


def run_generate(options: GenerateOptions, common: CommonOptions) -> int:
    """Exit 0 when a kernel was accepted, 1 when none was, 3 when the model or a part failed."""
    if len(options.words) != 1 or not options.impl:
        count = len(options.words)
        raise UsageError(
            "kernel generate", Text(f"{count} problems", f"{count} 个问题") if count != 1 else NO_IMPL,
            Text("a problem, --impl and --model", "一个问题、--impl 和 --model"),
            Text("for example: torchstone kernel generate relu --impl triton --model NAME",
                 "例如：torchstone kernel generate relu --impl triton --model 模型名"),
        )  # fmt: skip
    _check_limits(options)
    needs_torch("kernel generate")
    from torchstone.kernels.candidate import known_implementation
    from torchstone.kernels.generation.generate import generate
    from torchstone.kernels.generation.loop import Settings
    from torchstone.kernels.problem import load_problem
    from torchstone.kernels.sessions.confinement import require_confinement
    from torchstone.kernels.sessions.workshop import Workshop
    from torchstone.kernels.verifier import preload_for, verify
    from torchstone.trace.connect import connect

    given = load_problem(options.words[0])
    require_confinement(options.allow_unconfined)
    settings = Settings(
        given.name,
        given.source,
        known_implementation(options.impl),
        options.model,
        options.max_steps,
        options.max_tokens,
        options.max_seconds,
        options.answer_tokens,
        options.temperature,
        options.model_seed,
    )
    client = connect(
        options.model, options.base_url, options.provider,
        max_tokens=options.max_tokens, max_seconds=options.max_seconds,
    )  # fmt: skip
    progress = Progress(common.lang, common.quiet, Text("generating", "生成中"))
    try:
        # one process that has loaded torch serves every verification of this run
        with Workshop(preload_for(settings.implementation, given.framework)) as workshop:
            judged = functools.partial(verify, workshop=workshop, without_words=True)
            outcome, report = generate(
                settings, client, options.log_dir, judged, options.task, progress
            )
    finally:
        progress.end()
    show(report, common)
    return 0 if outcome.accepted else 3 if report.failed else 1


def _check_limits(options: GenerateOptions) -> None:
    """Nothing is recorded of a run that could not take one step."""
    usual = GenerateOptions()
    for name in ("max_steps", "max_tokens", "answer_tokens"):
        flag = f"kernel generate: --{name.replace('_', '-')}"
        check_count(flag, getattr(options, name), getattr(usual, name))
    check_seconds("kernel generate: --max-seconds", options.max_seconds, usual.max_seconds)
