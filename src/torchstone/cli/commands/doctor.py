"""`torchstone doctor`: what is installed, and what each missing part would add."""

from __future__ import annotations

import platform
import sys

from torchstone._version import __version__
from torchstone.cli.common import CommonOptions
from torchstone.cli.show import format_for, put, show, use_colour
from torchstone.core.files import cache_folder
from torchstone.core.finding import Location
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.lint.catalog import all_rules
from torchstone.lint.outside._process import program
from torchstone.render.style import Style

HELP = Text(
    en="what is installed here, and what each missing part would add",
    zh="本机已安装的部件，以及缺少的部件能带来什么",
)
FORMATS = ("text", "json")

_PACKAGES = (
    (
        "pathspec",
        "pip install pathspec",
        "honouring .gitignore in folders",
        "遵守文件夹中的 .gitignore",
    ),
    ("torch", 'pip install "torchstone[torch]"', "cost", "cost"),
    (
        "transformers",
        'pip install "torchstone[hf]"',
        "cost hf:NAME, and the DeepSeek-OCR analyzer",
        "cost hf:名称，以及 DeepSeek-OCR 分析器",
    ),
    (
        "timm",
        "pip install timm, in an environment of its own (see docs/cost.md)",
        "cost timm:NAME",
        "cost timm:名称",
    ),
    (
        "Pillow",
        'pip install "torchstone[image]"',
        "real images in the DeepSeek-OCR analyzer",
        "DeepSeek-OCR 分析器使用真实图像",
    ),
    (
        "hydra-core",
        'pip install "torchstone[hydra]"',
        "hydra settings of the DeepSeek-OCR runner",
        "DeepSeek-OCR 运行器的 hydra 配置",
    ),
    (
        "PyYAML",
        'pip install "torchstone[yaml]"',
        "cost --stages FILE.yaml",
        "cost --stages FILE.yaml",
    ),
)
_PROGRAMS = (
    ("git", "install git", "check --since COMMIT", "check --since 提交"),
    ("mypy", "pip install mypy", "check --with mypy", "check --with mypy"),
    ("ruff", "pip install ruff", "check --with ruff", "check --with ruff"),
)


def _version(package: str) -> str | None:
    """A package's version without loading it: torch alone would take seconds."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def report() -> Report:
    """What there is as the environment, what there is not as gaps."""
    environment = {
        "torchstone": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "encoding": sys.stdout.encoding or "",
        "cache": str(cache_folder()),
    }
    gaps: list[Gap] = []
    for name, close, en, zh in _PACKAGES:
        found = _version(name)
        if found:
            environment[name] = found
        else:
            gaps.append(_gap(name, close, en, zh))
    for name, close, en, zh in _PROGRAMS:
        found_program = program(name)
        if found_program:
            environment[name] = found_program[0]
        else:
            gaps.append(_gap(name, close, en, zh))
    count = Measure(
        "rules",
        len(all_rules()),
        "rules",
        Text("files in the rules folder", "规则文件夹中的文件数"),
        Text("rules", "规则"),
        tool="doctor",
    )
    return Report("doctor", (), (count,), tuple(gaps), environment)


def _gap(name: str, close: str, en: str, zh: str) -> Gap:
    reason = Text(f"not installed; it would add: {en}", f"未安装；安装后可用：{zh}")
    return Gap(name, Message("doctor.missing", reason), close, Location(), tool="doctor")


def run(options: None, common: CommonOptions) -> int:
    made = report()
    if format_for(made, common) != "text":
        show(made, common)
        return 0
    style = Style(lang=common.lang, colour=use_colour(common.colour) and not common.output)
    width = max(map(len, made.environment))
    lines = [
        f"{style.paint('✓', 'green')} {key:<{width}}  {value}"
        for key, value in made.environment.items()
    ]
    lines.append(f"{style.paint('✓', 'green')} {'rules':<{width}}  {len(all_rules())}")
    for gap in made.gaps:
        lines.append(
            f"{style.paint('–', 'yellow')} {gap.subject:<{width}}  {gap.reason.say(common.lang)}"
        )
        lines.append(f"  {'':<{width}}  -> {gap.close}")
    put("\n".join(lines) + "\n", common)
    return 0
