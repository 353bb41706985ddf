"""`torchstone cost TARGET`: what a model costs, before a GPU is rented."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from torchstone.cli.common import CommonOptions
from torchstone.cli.requirements import needs_torch
from torchstone.cli.settings import find_config, read_table
from torchstone.cli.show import Progress, show
from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.core.text import Text
from torchstone.cost.options import CostOptions

HELP = Text(
    en="parameters, FLOPs, bytes, memory and time of a model, per stage, module and operator",
    zh="模型的参数量、FLOPs、访存、内存与时间，按阶段、模块、算子给出",
)
FORMATS = ("text", "json", "markdown", "html", "agent")
OPTIONS = CostOptions
CONFIGURABLE = True


def run(options: CostOptions, common: CommonOptions) -> int:
    if not options.target:
        raise UsageError(
            "cost", "no target", Text("a model", "一个模型"),
            Text("for example: torchstone cost hf:llama", "例如：torchstone cost hf:llama"),
        )  # fmt: skip
    needs_torch("cost")
    from torchstone.cost.survey import survey
    from torchstone.runtime.devices import read_devices

    path = Path(common.config) if common.config else find_config(Path("."))
    tables = read_table(path).get("devices", {})
    own_devices = read_devices(tables, f"{path} [tool.torchstone.devices]")
    progress = Progress(common.lang, common.quiet, Text("counting", "统计中"))
    try:
        # what the user's code prints is no part of the answer
        with contextlib.redirect_stdout(sys.stderr):
            report = survey(options, progress, own_devices)
    except (TorchstoneError, KeyboardInterrupt):
        raise
    except Exception as error:
        if common.verbose:
            raise
        said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        raise InputError(
            f"cost: {options.target}",
            said,
            Text("a model that can run on the meta device", "能在 meta 设备上运行的模型"),
            Text("see where with -v; leave that part out, or measure a part of it",
                 "用 -v 查看位置；去掉该部分，或只测量其中一部分"),
        ) from None  # fmt: skip
    finally:
        progress.end()
    show(report, common)
    return 3 if report.failed else 1 if report.findings else 0
