"""What a program did beyond computing: files it wrote, processes it started, the network it asked for."""

from __future__ import annotations

from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.text import Text
from torchstone.dryrun.record import Record
from torchstone.dryrun.reporting.findings import TOOL

SIDE_EFFECTS = ("written_files", "started_processes", "refused_addresses")


def side_effect_measures(records: tuple[Record, ...]) -> list[Measure]:
    """One measure for each kind that there was."""
    written = [path for item in records for path in item.written]
    started = [words for item in records for words in item.processes]
    asked = [address for item in records for address in item.addresses]
    found = (
        _listed(SIDE_EFFECTS[0], written, Text("files written", "写入的文件"),
                Text("kept in a scratch folder that is removed; --allow-write lets the program write",
                     "写入已删除的临时目录；--allow-write 允许程序写入"),
                Text("file", "文件")),
        _listed(SIDE_EFFECTS[1], started, Text("processes started", "启动的进程"),
                Text("run without fake tensors, ended with the program", "不使用虚拟张量运行，随程序一起结束"),
                Text("command", "命令")),
        _listed(SIDE_EFFECTS[2], asked, Text("network requests", "网络请求"),
                Text("refused: there is no network in a dry run", "已拒绝：空跑中没有网络"),
                Text("address", "地址")),
    )  # fmt: skip
    return [item for item in found if item is not None]


def _listed(name: str, items: list[str], label: Text, how: Text, column: Text) -> Measure | None:
    unique = list(dict.fromkeys(items))
    if not unique:
        return None
    table = Table(label, (column,), tuple((item,) for item in unique))
    return Measure(name, len(unique), "", how, label, evidence=(table,), tool=TOOL)
