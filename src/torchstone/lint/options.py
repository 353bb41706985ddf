"""The options of `check`; flags, configuration keys, docs and agent schemas come from here."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.core.options import option


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What `torchstone check` can be told."""

    paths: tuple[str, ...] = option(
        (".",), "files, folders, notebooks, or - for standard input", "文件、文件夹、notebook，或用 - 表示标准输入",
        positional=True, config=False, metavar="PATH",
    )  # fmt: skip
    select: tuple[str, ...] = option(
        (), "only these rules, by code, name, prefix (TS1) or group", "只启用这些规则：代码、名称、前缀（TS1）或组名",
        metavar="RULE",
    )  # fmt: skip
    ignore: tuple[str, ...] = option(
        (), "skip these rules, by code, name, prefix or group", "不启用这些规则：代码、名称、前缀或组名", metavar="RULE",
    )  # fmt: skip
    exclude: tuple[str, ...] = option(
        (), "skip files that match these .gitignore patterns", "排除匹配这些 .gitignore 模式的文件", metavar="PATTERN",
    )  # fmt: skip
    min_confidence: str = option(
        "likely", "report only findings with at least this confidence", "只报告不低于此置信度的问题",
        choices=("certain", "likely", "possible"),
    )  # fmt: skip
    fail_on: str = option(
        "medium", "exit 1 only for findings at least this severe", "仅当存在不低于此级别的问题时以 1 退出",
        choices=("high", "medium", "low", "never"),
    )  # fmt: skip
    strict: bool = option(
        False, "also report what the precision rules consider harmless, with the reason",
        "同时报告精度规则认为无害的情况，并说明原因",
    )  # fmt: skip
    low: bool = option(
        False, "show LOW findings too, not only their number", "同时显示 LOW 级问题，而不只是数量",
    )  # fmt: skip
    show: tuple[str, ...] = option(
        (), "only the findings with these ids (as the agent format prints them), in full",
        "只显示这些编号（agent 格式所列）的问题，完整输出", config=False, metavar="ID",
    )  # fmt: skip
    fix: bool = option(
        False, "apply safe fixes", "应用安全的修复", config=False,
    )  # fmt: skip
    unsafe_fixes: bool = option(
        False, "with --fix or --diff: unsafe fixes too", "配合 --fix 或 --diff：包括不安全的修复",
    )  # fmt: skip
    diff: bool = option(
        False, "show what --fix would change, without changing it", "显示 --fix 会做的修改，但不写入", config=False,
    )  # fmt: skip
    baseline: str = option(
        "", "do not report the findings recorded in this file", "不报告该基线文件中已记录的问题", metavar="FILE",
    )  # fmt: skip
    write_baseline: str = option(
        "", "record the present findings in this file and exit 0", "把当前问题写入该基线文件并以 0 退出",
        config=False, metavar="FILE",
    )  # fmt: skip
    since: str = option(
        "", "only findings on lines changed since this commit", "只报告自该提交以来改动的行", config=False, metavar="COMMIT",
    )  # fmt: skip
    with_tools: tuple[str, ...] = option(
        (), "outside tools to merge in: mypy, ruff, or a .sarif file", "合并外部工具结果：mypy、ruff 或 .sarif 文件",
        config=False, flag="--with", metavar="TOOL",
    )  # fmt: skip
    allow_plugins: bool = option(
        False, "with --with mypy: run the plugins that the project's configuration names",
        "配合 --with mypy：运行项目配置中指定的插件", config=False,
    )  # fmt: skip
    torch: str = option(
        "", "the torch version the project targets (2.4, latest); from its requirements by default",
        "项目所用的 torch 版本（如 2.4、latest）；默认从依赖声明中读取", metavar="VERSION",
    )  # fmt: skip
    no_cache: bool = option(
        False, "neither read nor write the cache", "不读取也不写入缓存",
    )  # fmt: skip
    jobs: int = option(
        0, "number of processes; 0 chooses by the size of the project", "读取文件的进程数；0 表示按规模自动决定",
    )  # fmt: skip
    stdin_name: str = option(
        "<stdin>", "name of standard input in reports", "标准输入在报告中的名称", config=False, metavar="NAME",
    )  # fmt: skip
