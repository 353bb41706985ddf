"""`torchstone completion bash|zsh|fish`: a script that completes commands and flags."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.cli.common import CommonOptions
from torchstone.cli.completion import SHELLS, script, words_by_command
from torchstone.cli.show import put
from torchstone.core.options import option, unknown
from torchstone.core.text import Text

HELP = Text(en="a completion script for bash, zsh or fish", zh="bash、zsh 或 fish 的补全脚本")
FORMATS = ("text",)


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """For which shell."""

    shell: str = option(
        "", "bash, zsh or fish", "bash、zsh 或 fish", config=False, positional=True, metavar="SHELL"
    )


OPTIONS = CompletionOptions
READS_CONFIG = False


def run(options: CompletionOptions, common: CommonOptions) -> int:
    if options.shell not in SHELLS:
        raise unknown("completion", options.shell, list(SHELLS))
    put(script(options.shell, words_by_command()), common)
    return 0
