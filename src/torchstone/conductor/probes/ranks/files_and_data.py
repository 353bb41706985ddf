"""Who writes which file, and who reads which data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.ranks.facts import RankFacts
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text

ONE_FILE = ProbeRule(
    "PR401", "ranks-write-one-file", Severity.MEDIUM, "wrong result",
    Text("several ranks write one file", "多个 rank 写入同一文件"),
    Text("they write at the same time: the file can end up torn, and on shared storage all wait for each other",
         "它们同时写入：文件可能损坏，在共享存储上还会互相等待"),
    Text("write on rank 0 only, with a barrier after it where others read the file",
         "仅在 rank 0 上写入；若其他 rank 要读取，则在其后加 barrier"),
)  # fmt: skip
SAME_DATA = ProbeRule(
    "PR404", "ranks-read-the-same-data", Severity.HIGH, "wrong result",
    Text("all ranks of a data-parallel run read the same batches", "数据并行的各 rank 读取相同的批次"),
    Text("their gradients are equal, so that the ranks repeat each other's work and the batch is not larger",
         "它们的梯度相同，各 rank 只是在重复劳动，批大小并未增大"),
    Text("give the loader a DistributedSampler with the rank of the process", "为加载器使用带本进程 rank 的 DistributedSampler"),
)  # fmt: skip
RULES = (ONE_FILE, SAME_DATA)


def compare(root: Path, ranks: list[RankFacts]) -> Iterator[Shown]:
    yield from _one_file(root, ranks)
    yield from _same_data(root, ranks)


def _one_file(root: Path, ranks: list[RankFacts]) -> Iterator[Shown]:
    first = {item.path: item.place for item in ranks[0].saves}
    for path, place in first.items():
        writers = sum(any(item.path == path for item in facts.saves) for facts in ranks)
        if writers > 1:
            yield Shown(
                ONE_FILE, place,
                Text("{writers} ranks write {path}", "{writers} 个 rank 写入 {path}"),
                {"writers": str(writers), "path": Path(path).name},
                (number("writers of one file", "同一文件的写入者", writers, "", IN_THE_RUN),),
                offered(root, place, _on_rank_zero),
            )  # fmt: skip
            return


def _same_data(root: Path, ranks: list[RankFacts]) -> Iterator[Shown]:
    if not all(facts.data_parallel and facts.batches for facts in ranks):
        return
    place, digest = ranks[0].batches[0]
    if all(facts.batches[0][1] == digest for facts in ranks[1:]):
        yield Shown(
            SAME_DATA, place,
            Text("the first batch of all {count} ranks is the same", "全部 {count} 个 rank 的第一个批次相同"),
            {"count": str(len(ranks))},
            (number("ranks with the same batch", "批次相同的 rank", len(ranks), "", IN_THE_RUN),),
            offered(root, place, _own_rank),
        )  # fmt: skip


def _own_rank(file: SourceFile, place: Place) -> Iterator[Fix]:
    for call in file.calls(place.line, "DistributedSampler"):
        for item in call.keywords:
            if item.arg == "rank":
                yield fix([file.replace(item.value, "torch.distributed.get_rank()")],
                          "give each rank its own share", "为每个 rank 分配各自的数据")  # fmt: skip


def _on_rank_zero(file: SourceFile, place: Place) -> Iterator[Fix]:
    """The statement under a condition on the rank, in whatever way the project asks for it."""
    statement = file.statement(place.line)
    if statement is None:
        return
    depth = file.indent(statement.lineno)
    function = file.function(place.line)
    names = {item.arg for item in function.args.args} if function else set()
    source = ast.unparse(file.tree)
    ways = ["rank == 0"] if "rank" in names else []
    ways += ["dist.get_rank() == 0"] if "dist." in source else ["torch.distributed.get_rank() == 0"]
    for way in ways:
        text = file.source(statement).replace("\n", "\n    ")
        yield fix(
            [file.replace(statement, f"if {way}:\n{depth}    {text}")],
            "write on rank 0 only",
            "仅在 rank 0 上写入",
        )
