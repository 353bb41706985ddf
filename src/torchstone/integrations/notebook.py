"""`%load_ext torchstone`: cells that are checked and training loops that are watched, in a notebook."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchstone.core.errors import TorchstoneError, UsageError
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.lint.engine import check_paths

_CHECK_HELP = """%%check [--only]

Checks the cell with torchstone's static rules, shows what was found, and runs the cell.
Cells that ran before are read too. --only: check without running the cell."""
_WATCH_HELP = """%%watch [MODEL] [OPTIMIZER] [--loss NAME]

Runs the cell and watches the training in it: each optimizer step is a step. MODEL and OPTIMIZER are
names of the notebook; without them the only ones that it holds. The loss is the variable `loss`."""


def load(shell: Any) -> None:
    """Give an IPython shell the two cell magics."""

    def check(line: str, cell: str) -> Any:
        return _told(lambda: check_cell(shell, line, cell))

    def watch(line: str, cell: str) -> Any:
        return _told(lambda: watch_cell(shell, line, cell))

    check.__doc__, watch.__doc__ = _CHECK_HELP, _WATCH_HELP
    shell.register_magic_function(check, "cell", "check")
    shell.register_magic_function(watch, "cell", "watch")


def unload(shell: Any) -> None:
    for name in ("check", "watch"):
        shell.magics_manager.magics["cell"].pop(name, None)


def _told(work: Callable[[], Any]) -> Any:
    """The user's mistakes are one line, as on the command line."""
    try:
        return work()
    except TorchstoneError as error:
        print(f"torchstone: {error}")  # noqa: T201 - a notebook shows what is printed
        return None


def check_cell(shell: Any, line: str, cell: str) -> Report:
    """What the rules say about a cell, knowing the cells that ran before it."""
    from IPython.display import display

    words = shlex.split(line)
    if words not in ([], ["--only"]):
        raise UsageError(
            "%%check", " ".join(words), "%%check [--only]", Text("leave it out", "请去掉")
        )
    before = [text for text in shell.user_ns.get("In", [])[1:-1] if not text.startswith("%%check")]
    report = _checked([*map(_without_magic, before), cell])
    if words:
        return report
    display(report)  # type: ignore[no-untyped-call]
    shell.run_cell(cell)
    return None  # type: ignore[return-value]  # the report stands above what the cell prints


def _without_magic(text: str) -> str:
    """A cell that was run by one of these magics, without its first line."""
    return text.partition("\n")[2] if text.startswith(("%%check", "%%watch")) else text


def _checked(cells: list[str]) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.ipynb"
        made: list[dict[str, object]] = [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
            for cell in cells
        ]  # fmt: skip
        path.write_text(
            json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
        found = check_paths(path)
    last = len(cells)
    own = [item for item in found.findings if f"cell {last}" in str(item.location).split(":")]
    moved = tuple(replace(item, location=replace(item.location, path=_NAME)) for item in own)
    return replace(found, findings=moved, subject=_NAME)


_NAME = "this cell"


def watch_cell(shell: Any, line: str, cell: str) -> Any:
    """Run a cell with its training watched; the report of the run is the cell's result."""
    from torchstone.watch.after.report import report_of
    from torchstone.watch.monitor import Watch
    from torchstone.watch.record.runfile import load_run

    names, loss_name = _asked(line)
    model, optimizer = _parts(shell.user_ns, names)
    pending: list[Any] = []

    def end_step(*_: object) -> None:
        while pending:
            watch.step(pending.pop(0))

    def stepped(*_: object) -> None:
        end_step()
        pending.append(shell.user_ns.get(loss_name))

    with Watch(model, optimizer) as watch:
        # a step ends where the next forward begins: what the optimizer changed is seen before
        hooks = (
            model.register_forward_pre_hook(end_step),
            optimizer.register_step_post_hook(stepped),
        )
        try:
            shell.run_cell(cell)
        finally:
            end_step()
            for hook in hooks:
                hook.remove()
        folder = watch.recorder.folder if watch.recorder is not None else None
    return report_of(load_run(folder)) if folder is not None and watch.steps else None


def _asked(line: str) -> tuple[list[str], str]:
    words = shlex.split(line)
    loss = "loss"
    if "--loss" in words:
        place = words.index("--loss")
        loss = "".join(words[place + 1 : place + 2])
        del words[place : place + 2]
    if len(words) > 2 or not loss.isidentifier() or any(not word.isidentifier() for word in words):
        raise UsageError("%%watch", line.strip(), "%%watch [MODEL] [OPTIMIZER] [--loss NAME]",
                         Text("name variables of the notebook", "请写笔记本中的变量名"))  # fmt: skip
    return words, loss


def _parts(names: Mapping[str, Any], given: list[str]) -> tuple[Any, Any]:
    """The model and the optimizer: as they are named, or the only ones there are."""
    from torch import nn
    from torch.optim import Optimizer

    wanted = ((nn.Module, "model", "模型"), (Optimizer, "optimizer", "优化器"))
    found = []
    for place, (kind, en, zh) in enumerate(wanted):
        if place < len(given):
            value = names.get(given[place])
            if not isinstance(value, kind):
                raise UsageError("%%watch", f"{given[place]!r}", Text(f"the name of a {en}", f"{zh}的变量名"),
                                 Text("run the cell that makes it first", "请先运行创建它的单元格"))  # fmt: skip
        else:
            value = _only(names, kind, en, zh)
        found.append(value)
    return found[0], found[1]


def _only(names: Mapping[str, Any], kind: type, en: str, zh: str) -> Any:
    values = {key: value for key, value in names.items() if isinstance(value, kind) and not key.startswith("_")}  # fmt: skip
    own = {id(value): key for key, value in values.items()}
    inner = {id(part) for value in values.values() for part in list(getattr(value, "modules", list)())[1:]}  # fmt: skip
    outer = [
        key for number, key in own.items() if number not in inner and not _is_loss(values[key])
    ]
    if len(outer) != 1:
        listed = ", ".join(outer) or "none"
        raise UsageError("%%watch", Text(f"{len(outer)} {en}s ({listed})", f"{len(outer)} 个{zh}（{listed}）"),
                         Text(f"one {en}", f"一个{zh}"),
                         Text("name it: %%watch model optimizer", "请写出名称：%%watch model optimizer"))  # fmt: skip
    return values[outer[0]]


def _is_loss(value: Any) -> bool:
    """A module without parameters is a loss or a transform, not what is trained."""
    return hasattr(value, "parameters") and not any(True for _ in value.parameters())
