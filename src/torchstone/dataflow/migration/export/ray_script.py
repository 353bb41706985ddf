"""`torchstone flow export --ray`: a script that runs a plan as a Ray Data pipeline."""

from __future__ import annotations

import json
import re
from pathlib import Path

from torchstone.core.answer import Answer, Tile
from torchstone.core.errors import UsageError
from torchstone.core.files import write_atomically
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.dataflow.migration.export.ray_data import RayOptions, pool_sizes
from torchstone.dataflow.options import ExportOptions
from torchstone.dataflow.plan import MigrationPlan, load_plan

_NAME = r"[^\W\d]\w*"
_TARGET = re.compile(rf"({_NAME}(?:\.{_NAME})*):({_NAME})")
_TEMPLATE = '''"""{function} over many items, as a Ray Data pipeline. Needs `pip install "torchstone[ray]"`.

A CPU stage runs the function and records what the plan moves; a device stage computes it in batches.
"""

import json

from {module} import {function}

from torchstone.dataflow import PipelineMigrator

PLAN = json.loads({plan!r})


def pipeline(items, **options):
    """A Ray dataset with a column `result`; read it with `results_of`."""
    return PipelineMigrator.from_plan(PLAN).to_ray({function}, items, **{{"batch_size": {batch}, **options}})


if __name__ == "__main__":
    import sys

    from torchstone.dataflow.migration.export.ray_data import results_of

    for result in results_of(pipeline(sys.argv[1:])):
        print(result)
'''


def ray_script(plan: MigrationPlan, target: str, batch: int) -> str:
    """The text of the script. The function is named in it, not run."""
    match = _TARGET.fullmatch(target)
    if match is None:
        raise UsageError(
            "flow export --call",
            repr(target[:100]),
            Text("module:function", "module:function"),
            Text(
                "name the function that makes one sample of one item",
                "请给出由一项数据得到一个样本的函数",
            ),
        )
    text = json.dumps(plan.to_data(), ensure_ascii=False)
    return _TEMPLATE.format(module=match[1], function=match[2], plan=text, batch=batch)


def export_command(options: ExportOptions) -> Report:
    """`flow export`: the script in a file, and a report that says what it does."""
    if not options.ray:
        raise UsageError(
            "flow export", "no engine", Text("--ray", "--ray"), Text("add --ray", "请加上 --ray")
        )
    plan = load_plan(options.plan)
    script = ray_script(plan, options.call, options.batch)
    write_atomically(Path(options.save), script)
    sizes = pool_sizes(plan, RayOptions(batch_size=options.batch), cpus=64)
    moved = len(plan.context_device_map)
    words = Text(
        f"{options.save}: {options.call} as a Ray Data pipeline, {moved} operators on a device",
        f"{options.save}：{options.call} 的 Ray Data 管道，{moved} 个算子在设备上执行",
    )
    tiles = (
        Tile(
            Text("CPU workers per device stage", "CPU 工作进程"),
            f"{sizes.cpu} : {sizes.device}",
            Text("by the seconds in the plan, on 64 CPUs", "按计划中的耗时，以 64 个 CPU 计"),
        ),
    )
    return Report("flow", subject=options.plan, answer=Answer(words, "good", tiles=tiles))
