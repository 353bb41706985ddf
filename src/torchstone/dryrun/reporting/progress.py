"""How far a program came, and what was assumed on the way."""

from __future__ import annotations

from torchstone.core.measure import Measure
from torchstone.core.pictures import Document, Table
from torchstone.core.text import Text, Words, words
from torchstone.dryrun.record import Constraint, Progress, Record
from torchstone.dryrun.reporting.findings import TOOL

_PRINTED = 200
"""Lines of a program's output that are kept."""


def measures_of(records: tuple[Record, ...]) -> tuple[Measure, ...]:
    if not records:
        return ()
    main = next((item for item in records if item.path == 0), records[-1])
    if main.constraints is not None:
        return (_symbolic(main.constraints, "proven" in main.notes),)
    return (
        _progress(main),
        *covered_measures(main.progress, main.unreached),
        *assumption_measures(records),
    )


NOT_REACHED = "not_reached"
OPERATORS = Text("operators", "算子")
_PARTS = {
    "evaluation": Text("evaluation", "评估"),
    "saving": Text("saving a checkpoint", "保存检查点"),
}


def covered_measures(done: Progress, unreached: tuple[str, ...]) -> list[Measure]:
    """The parts of a training program that ran, with counts; and those that it has and did not come to."""
    parts = (
        (Text("forward", "前向"), done.training_forwards),
        (Text("backward", "反向"), done.backwards),
        (Text("optimizer step", "优化步"), done.optimizer_steps),
        (Text("evaluation", "评估"), done.evaluation_forwards),
        (Text("checkpoint saved", "保存检查点"), done.saves),
        (Text("checkpoint loaded", "加载检查点"), done.loads),
        (Text("hook", "钩子"), done.hooks),
        (Text("compiled region", "编译区域"), done.compiled),
    )
    reached = [(name, count) for name, count in parts if count]
    if not reached:
        return []
    how = Text(
        ", ".join(f"{name.en} ({count})" for name, count in reached),
        "，".join(f"{name.zh}（{count}）" for name, count in reached),
    )
    label = Text("parts covered", "已覆盖的部分")
    found = [Measure("covered", len(reached), "", how, label, tool=TOOL)]
    missing = [_PARTS[name] for name in unreached if name in _PARTS]
    if missing:
        names = Text(", ".join(m.en for m in missing), "、".join(m.zh for m in missing))
        label = Text("parts not reached", "未到达的部分")
        found.append(Measure(NOT_REACHED, len(missing), "", names, label, tool=TOOL))
    return found


def gpu_measure(count: int) -> Measure:
    """How many GPUs the program was made to believe in."""
    how = Text(
        "pretended, by --gpus or by the numbers in the source", "按 --gpus 或源码中的编号模拟"
    )
    return Measure("gpus", count, "", how, Text("GPUs", "GPU 数"), tool=TOOL)


def output_measures(output: str) -> list[Measure]:
    """What the program printed, its end where it is long."""
    text = output.strip()
    if not text:
        return []
    lines = text.splitlines()
    shown = Document(Text("what the program printed", "程序的输出"), "\n".join(lines[-_PRINTED:]))
    how = Text("printed by the program; the last lines are kept", "程序打印的行；保留最后部分")
    label = Text("lines of output", "输出行数")
    return [Measure("output", len(lines), "", how, label, evidence=(shown,), tool=TOOL)]


def _symbolic(constraints: tuple[Constraint, ...], proven: bool) -> Measure:
    how = Text(
        "runs at every size from 2 to 17, which does not prove the others",
        "在 2 到 17 的每个大小下都能运行，其余未证明",
    )
    if proven:
        how = Text(
            "proven for every size from 2 on, in torch's shape environment",
            "已在 torch 的形状环境中证明：从 2 起的任意大小都成立",
        )
    if constraints:
        how = Text("what must hold for other sizes to work", "其他大小须满足的条件")
    return Measure("constraints", len(constraints), "", how,
                   Text("size constraints", "大小约束"), tool=TOOL)  # fmt: skip


_ENDINGS = {
    "end": Text("ran to its end", "运行到结束"),
    "budget": Text("was stopped after {detail}, as asked", "按要求在{detail}后停止"),
    "time": Text("was stopped after {detail}", "在{detail}后停止"),
    "exit": Text("called sys.exit({detail})", "调用了 sys.exit({detail})"),
    "error": Text("was stopped by an error", "因错误停止"),
    "blocked": Text("could not go on", "无法继续"),
}


def _progress(record: Record) -> Measure:
    """How far the program came: what was looked at."""
    done = record.progress
    how = _ENDINGS.get(record.ending, _ENDINGS["end"])
    place = f" ({record.ending_place})" if record.ending_place.line else ""
    rows = (
        (Text("training forwards", "训练前向"), done.training_forwards),
        (Text("evaluation forwards", "评估前向"), done.evaluation_forwards),
        (Text("backward passes", "反向传播"), done.backwards),
        (Text("full batches", "完整批次"), done.full_batches),
        (Text("remainder batches", "余数批次"), done.remainder_batches),
        (Text("saves", "保存"), done.saves),
        (Text("loads", "加载"), done.loads),
        (OPERATORS, done.operators),
    )
    return Measure(
        "optimizer_steps",
        done.optimizer_steps,
        "",
        Text(
            "the program " + how.en.replace("{detail}", words(record.ending_detail, "en")) + place,
            "程序" + how.zh.replace("{detail}", words(record.ending_detail, "zh")) + place,
        ),
        Text("optimizer steps", "优化器步数"),
        evidence=(
            Table(
                Text("what was run", "运行内容"),
                (Text("part", "部分"), Text("count", "次数")),
                rows,
            ),
        ),
        tool=TOOL,
    )


def assumption_measures(records: tuple[Record, ...]) -> list[Measure]:
    """Questions that only real values could answer, with the answers that were given."""
    rows: dict[tuple[str, Words, Words], int] = {}
    for record in records:
        for item in record.assumptions:
            key = (str(item.place), item.question, item.answer)
            rows[key] = max(rows.get(key, 0), item.count)
    if not rows:
        return []
    return [
        Measure(
            "assumptions",
            len(rows),
            "",
            Text(
                "questions about values, which a dry run does not have, and their answers",
                "关于取值的提问（空跑没有真实数值）及给出的回答",
            ),
            Text("assumptions", "假设"),
            evidence=(
                Table(
                    Text("assumed values", "假设的值"),
                    (Text("line", "行"), Text("question", "提问"), Text("answer", "回答"),
                     Text("times", "次数")),
                    tuple((*key, count) for key, count in rows.items()),
                ),
            ),
            tool=TOOL,
        )
    ]  # fmt: skip
