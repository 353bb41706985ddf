"""What the commands ask for: a trace, a plan, a run with a plan."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.files import write_atomically
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.dataflow.device.profile import load_profile, profile_for
from torchstone.dataflow.graph.builder import DAGBuilder
from torchstone.dataflow.graph.dag import ExecutionDAG
from torchstone.dataflow.graph.export import (
    graph_data,
    keep_out_of_version_control,
    load_graph,
)
from torchstone.dataflow.options import PlanOptions, TraceOptions
from torchstone.dataflow.placement.coarsening import GraphCoarsening
from torchstone.dataflow.placement.manager import OptimizerManager
from torchstone.dataflow.plan import MigrationPlan, plan_from_data
from torchstone.dataflow.report import PlanReport, report_on_plan, report_on_trace
from torchstone.dataflow.script import (
    Compile,
    Terminated,
    check_subject,
    output_to_stderr,
    program_hash,
    run_subject,
    terminated_by_exception,
)
from torchstone.dataflow.tracing.assemble import assemble
from torchstone.dataflow.tracing.journal import journal_of, read_journal
from torchstone.dataflow.tracing.time_use import other_seconds
from torchstone.dataflow.tracing.tracer import EnhancedTracer, without_our_frames
from torchstone.dataflow.view.chrome import chrome_trace
from torchstone.dataflow.view.graphviz import draw_dag


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced program."""

    tracer: EnhancedTracer
    failure: str
    """Name of the exception that ended it; empty when it ended well."""

    @property
    def dag(self) -> ExecutionDAG:
        return self.tracer.dag_builder.dag


def trace_program(options: TraceOptions) -> Traced:
    """Run the script or the function with hooks; an exception of its own ends it, the graph stays."""
    check_subject("trace", options.script, options.call)
    save = Path(options.save) if options.save else None
    about = {
        "program": options.script or options.call,
        "program_hash": program_hash(options.script, options.call),
    }
    tracer = EnhancedTracer(
        options.max_depth, track_memory=True, max_events=options.max_events,
        journal=journal_of(save) if save is not None else None, about=about,
    )  # fmt: skip
    failure = ""
    left: dict[str, object] = {}
    tracer.start_tracing()
    try:
        with output_to_stderr(), terminated_by_exception():
            left = run_subject(options.script, options.call, options.arguments, _recording(tracer))
    except Terminated:
        failure = "SIGTERM"
    except KeyboardInterrupt:
        failure = "KeyboardInterrupt"
    except SystemExit as error:
        failure = "" if error.code in (None, 0) else f"SystemExit({error.code})"
    except TorchstoneError:
        raise
    except Exception as error:  # the user's own: shown as Python shows it
        failure = type(error).__name__
        traceback.print_exception(without_our_frames(error), file=sys.stderr)
    finally:
        tracer.stop_tracing()  # while what the program left is still there: these are its results
        left.clear()
    return Traced(tracer, failure)


def _recording(tracer: EnhancedTracer) -> Compile:
    def compiled(path: str) -> CodeType | None:
        file = tracer.instrumentation.file(path)
        return file.recording if file is not None else None

    return compiled


def trace_command(options: TraceOptions) -> Report:
    """`flow trace`: the report, and the graph in a file."""
    traced = trace_program(options)
    subject = options.script or options.call
    folded = GraphCoarsening().coarsen(traced.dag)
    if options.save:
        tracer = traced.tracer
        data = graph_data(
            traced.dag, tracer.notes, subject, tracer.about["program_hash"], tracer.wall_seconds
        )
        data["other_seconds"] = other_seconds((*tracer.time_uses, *tracer.worker_time_uses))
        save = Path(options.save)
        keep_out_of_version_control(save)
        write_atomically(save, json.dumps(data, ensure_ascii=False, separators=(",", ":")))
        journal_of(save).unlink(missing_ok=True)  # the graph is there as a whole
    if options.chrome:
        write_atomically(Path(options.chrome), json.dumps(chrome_trace(traced.dag)))
    if options.svg:
        draw_dag(traced.dag, options.svg, subject)
    return report_on_trace(traced.tracer, folded, subject, traced.failure, options.save)


def plan_command(options: PlanOptions) -> Report:
    """`flow plan`: the report, and the plan in a file."""
    dag, data = load_trace(Path(options.trace))
    manager = OptimizerManager(k=options.parts)
    result = manager.optimize(dag)
    profile = (
        load_profile(options.profile)
        if options.profile
        else profile_for(options.device, options.model)
    )
    asked = {
        "device": options.device,
        "profile": replace(profile, name=options.device, compiles=profile.compiles or options.fuse),
        "goal": options.goal,
        "batch": options.batch,
        "workers": options.workers,
        "consumer": options.consumer,
        "allow_rounding": options.allow_rounding,
        "other_seconds": _seconds(data.get("other_seconds"), options.trace),
        "program": str(data.get("program", "")),
        "program_hash": str(data.get("program_hash", "")),
    }
    folded, parts = result["coarsened_dag"], result["optimized_partitions"]
    made = manager.get_best_plan(folded, 1, **asked)
    by_parts = plan_from_data(manager.get_migration_plan(parts, folded, 1, **asked))
    if options.save:
        keep_out_of_version_control(Path(options.save))
        write_atomically(Path(options.save), json.dumps(made, ensure_ascii=False, indent=1))
    plan = plan_from_data(made)
    subject = plan.program or options.trace
    is_partial = bool(data.get("is_partial"))
    return report_on_plan(
        PlanReport(plan, by_parts, subject, options.save, is_partial), dag, folded
    )


def _seconds(given: object, where: str) -> float:
    """0 where the program was ended before its time was added up."""
    if given is None:
        return 0.0
    if not isinstance(given, int | float) or not 0 <= given < float("inf"):
        raise InputError(
            f"{where}: other_seconds", repr(given)[:60], Text("seconds, 0 or more", "非负的秒数"),
            Text("make it anew with `torchstone flow trace`", "请用 `torchstone flow trace` 重新生成"),
        )  # fmt: skip
    return float(given)


def load_trace(path: Path) -> tuple[ExecutionDAG, Mapping[str, Any]]:
    """The graph in a file; that of its journal where the program was ended before the graph was made."""
    journal = journal_of(path)
    if not journal.is_file() or (path.exists() and path.stat().st_mtime > journal.stat().st_mtime):
        return load_graph(path)
    about, traces = read_journal(journal)
    builder = DAGBuilder()
    assemble(traces, builder)
    return builder.dag, {**about, "is_partial": True}


def check_program(plan: MigrationPlan, script: str, call: str) -> None:
    """A plan for another program, or for another version of it, is refused."""
    given = script or call
    if not plan.program_hash:
        return
    if plan.program_hash != program_hash(script, call):
        raise InputError(
            f"flow run: {given}", f"a plan for {plan.program or 'another program'} as it was when it was traced",
            Text("a plan for this program as it is now", "针对当前程序的计划"),
            Text("trace and plan it again: torchstone flow trace, torchstone flow plan",
                 "请重新追踪并规划：torchstone flow trace、torchstone flow plan"),
        )  # fmt: skip
