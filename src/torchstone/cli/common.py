"""The options that every command shares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import UsageError
from torchstone.core.options import option
from torchstone.core.text import LANGS, Text
from torchstone.render import formats


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """How the answer looks and where it goes."""

    lang: str = option(
        "",
        "language of the output; from the locale by default",
        "输出语言；默认取自系统区域设置",
        choices=LANGS,
    )
    format: str = option(
        "", "output format; by default text, shortened above 30 findings",
        "输出格式；默认为 text，问题超过 30 个时自动变短",
        choices=tuple(formats()),
    )  # fmt: skip
    output: str = option(
        "",
        "write the answer to this file",
        "把结果写入该文件",
        short="-o",
        config=False,
        metavar="PATH",
    )
    colour: str = option(
        "auto",
        "colour on the terminal",
        "终端是否使用颜色",
        flag="--color",
        choices=("auto", "always", "never"),
    )
    quiet: bool = option(
        False,
        "one-line summary; findings without explanations",
        "只用一行给出结论，或只列问题",
        short="-q",
        config=False,
    )
    verbose: bool = option(
        False,
        "all evidence, figures and tables",
        "输出全部证据、数值与表格",
        short="-v",
        config=False,
    )
    budget: int = option(
        1500, "tokens that the agent format may use", "agent 格式可用的 token 数", metavar="TOKENS"
    )
    config: str = option(
        "", "this pyproject.toml instead of the nearest", "使用该 pyproject.toml 而非最近的一个",
        config=False, metavar="FILE",
    )  # fmt: skip
    command: str = ""
    """The command line itself, for pages that say how they were made."""
    date: str = ""


ENDINGS = {".json": "json", ".sarif": "sarif", ".md": "markdown", ".html": "html"}
"""The format that the ending of a file names."""
_SAME_ENDING = {".json": ("json", "sarif"), ".md": ("markdown", "agent", "text", "concise")}
"""What else a file of this ending may hold: SARIF is JSON, and plain text is Markdown."""


def check_ending(output: str, format: str) -> None:
    """Refuse a format that the file's ending denies: a browser shows JSON as no page."""
    ending = Path(output).suffix
    named = ENDINGS.get(ending)
    if named and format not in _SAME_ENDING.get(ending, (named,)):
        raise UsageError(
            f"-o {output}",
            f"--format {format}",
            Text(f"--format {named} for a file that ends in {ending}",
                 f"以 {ending} 结尾的文件应使用 --format {named}"),
            Text("leave --format out, or give the file another ending",
                 "请去掉 --format，或换一个扩展名"),
        )  # fmt: skip
