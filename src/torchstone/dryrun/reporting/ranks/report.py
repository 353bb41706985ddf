"""What came of playing all ranks, as a Report."""

from __future__ import annotations

from dataclasses import replace

from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.ranks_record import RanksRecord
from torchstone.dryrun.reporting.answer import ranks_answer
from torchstone.dryrun.reporting.findings import ENVIRONMENT, TOOL
from torchstone.dryrun.reporting.memory import fit_findings
from torchstone.dryrun.reporting.ranks.faults import fault_finding
from torchstone.dryrun.reporting.ranks.hazards import rank_hazard_finding
from torchstone.dryrun.reporting.ranks.measures import rank_measures
from torchstone.dryrun.reporting.ranks.names import ranks_text
from torchstone.dryrun.reporting.stops import gaps_of, nothing_left, refuse_unusable
from torchstone.dryrun.reporting.supplied import (
    comes_from_supplies,
    rest_on_supplies,
    supplies_do_not_fit,
    supply_measures,
)
from torchstone.dryrun.script.launch import Outcome
from torchstone.runtime.devices import Device


def report_on_ranks(subject: str, outcome: Outcome, device: Device | None = None) -> Report:
    """The report of a job's dry run."""
    ranks = outcome.ranks
    known = {rule.id: rule.info() for rule in (*rules.SINGLE_PROCESS, *rules.RANKS)}
    if ranks is None:
        return Report(TOOL, gaps=(nothing_left(subject, outcome),), rules=known, subject=subject)
    refuse_unusable(subject, ranks.record, outcome.output)
    made = report_on(subject, ranks, device)
    record = ranks.record
    if (
        record is not None
        and not record.error
        and comes_from_supplies(record.stop, outcome.supplies)
    ):
        gap = supplies_do_not_fit(record, outcome.supplies)
        made = replace(made, findings=(), gaps=(*made.gaps, gap))
        made = replace(made, answer=ranks_answer(made, ranks))
    return replace(
        made,
        findings=tuple(rest_on_supplies(item, outcome.supplies) for item in made.findings),
        measures=(*made.measures, *supply_measures(outcome.supplies)),
    )


def report_on(subject: str, ranks: RanksRecord, device: Device | None = None) -> Report:
    """The report of ranks that were played."""
    known = {rule.id: rule.info() for rule in (*rules.SINGLE_PROCESS, *rules.RANKS)}
    gaps = gaps_of(ranks.record) if ranks.record is not None else []
    gaps += [_real_parameters()] if ranks.real_parameters else []
    gaps += [_died(ranks)] if ranks.died and not ranks.faults else []
    gaps += [_out_of_time(ranks)] if ranks.out_of_time and not ranks.faults else []
    made = Report(
        TOOL,
        findings=() if any(gap.failed for gap in gaps) else _findings(ranks, device),
        measures=rank_measures(ranks, device),
        gaps=tuple(gaps),
        rules=known,
        subject=subject,
        environment=ENVIRONMENT,
    )
    return replace(made, answer=ranks_answer(made, ranks))


def _findings(ranks: RanksRecord, device: Device | None) -> tuple[Finding, ...]:
    """Faults between ranks, then what is wrong on each; what several passes show is told once."""
    found = [fault_finding(fault, ranks.record) for fault in reversed(ranks.faults)]
    found += [rank_hazard_finding(item, ranks.played) for item in ranks.hazards]
    found += fit_findings(ranks.largest, device)
    return tuple({(item.rule, item.path, item.line): item for item in found}.values())


def _out_of_time(ranks: RanksRecord) -> Gap:
    text = Text(
        "{count} of {played} ranks had not ended at the time limit; what came before it agrees",
        "到达时限时 {played} 个 rank 中有 {count} 个尚未结束；此前的通信一致",
    )
    given = {"count": str(len(ranks.out_of_time)), "played": str(len(ranks.played))}
    return Gap("time", Message("ranks-out-of-time", text, given),
               "give --max-seconds a larger value, or --max-steps 1", failed=True, tool=TOOL,
               close_zh="请增大 --max-seconds，或使用 --max-steps 1")  # fmt: skip


def _died(ranks: RanksRecord) -> Gap:
    text = Text(
        "the processes of ranks {died} ended without a report: os._exit, a signal, or a crash in native code",
        "rank {died} 的进程未给出报告即结束：os._exit、信号，或原生代码崩溃",
    )
    return Gap("ranks", Message("ranks-died", text, {"died": ranks_text(ranks.died)}),
               "run the script itself to see more", failed=True, tool=TOOL,
               close_zh="请直接运行脚本以了解更多")  # fmt: skip


def _real_parameters() -> Gap:
    text = Text(
        "FullyShardedDataParallel looks into the storage of its parameters: real ones were used, "
        "at their full size",
        "FullyShardedDataParallel 会访问参数存储：使用了完整大小的真实参数",
    )
    return Gap("parameters", Message("real-parameters", text), "use fully_shard (FSDP2)", tool=TOOL,
               close_zh="请使用 fully_shard（FSDP2）")  # fmt: skip
