"""`flow export --ray`: a script that runs a function over many items with Ray Data and a plan."""

from __future__ import annotations

import os
from pathlib import Path

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.dataflow.export.ray_data import RayOptions, pool_sizes
from torchstone.dataflow.options import ExportOptions
from torchstone.dataflow.plan import load_plan

_SCRIPT = '''"""A Ray Data pipeline: {cpu} CPU worker(s) and {device} device worker(s), by the rates of the plan."""

from torchstone.dataflow import PipelineMigrator
from {module} import {function}

PLAN = {plan!r}


def pipeline(items):
    """A Ray dataset with a column `result`, one for each item."""
    return PipelineMigrator.from_plan(PLAN).to_ray(
        {function}, items, batch_size={batch}, cpu_workers={cpu}, device_workers={device}
    )
'''


def ray_script(options: ExportOptions) -> str:
    """The text of the script; nothing is imported or run for it."""
    if not options.ray:
        raise UsageError(
            "flow export", "no form", Text("--ray", "--ray"),
            Text("for example: torchstone flow export --ray prepare:prepare -o pipeline.py",
                 "例如：torchstone flow export --ray prepare:prepare -o pipeline.py"),
        )  # fmt: skip
    module, _, function = options.function.partition(":")
    if not function.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(
            "flow export", repr(options.function), Text("module:function", "module:function"),
            Text("name a function at the top of a module", "请给出模块顶层的函数"),
        )  # fmt: skip
    if options.batch < 1:
        raise UsageError(
            "--batch", str(options.batch), Text("1 or more", "1 或更大"),
            Text("leave it out for 32", "省略即为 32"),
        )  # fmt: skip
    plan = load_plan(options.plan)
    sizes = pool_sizes(plan, RayOptions(options.batch), os.cpu_count() or 1)
    return _SCRIPT.format(
        module=module,
        function=function,
        plan=str(Path(options.plan).resolve()),
        batch=options.batch,
        cpu=sizes.cpu,
        device=sizes.device,
    )
