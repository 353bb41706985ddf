"""What the commands ask for: a trace, a plan, a run with a plan."""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType

from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.files import keep_out_of_git, write_atomically
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import ExecutionDAG
from torchstone.dataflow.graph.export import graph_data, load_graph
from torchstone.dataflow.options import PlanOptions, TraceOptions
from torchstone.dataflow.placement.coarsening import GraphCoarsening
from torchstone.dataflow.placement.manager import OptimizerManager
from torchstone.dataflow.placement.profile import load_profile, profile_for
from torchstone.dataflow.plan import MigrationPlan, plan_from_data
from torchstone.dataflow.report import report_on_plan, report_on_trace
from torchstone.dataflow.script import (
    Compile,
    check_subject,
    output_to_stderr,
    program_hash,
    run_subject,
)
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
    tracer = EnhancedTracer(options.max_depth, track_memory=True, max_events=options.max_events)
    failure = ""
    left: dict[str, object] = {}
    tracer.start_tracing()
    try:
        with output_to_stderr():
            left = run_subject(options.script, options.call, options.arguments, _recording(tracer))
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
        data = graph_data(
            traced.dag, traced.tracer.notes, subject, program_hash(options.script, options.call)
        )
        save = Path(options.save)
        _ignore_folder(save)
        write_atomically(save, json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    if options.chrome:
        write_atomically(Path(options.chrome), json.dumps(chrome_trace(traced.dag)))
    if options.svg:
        draw_dag(traced.dag, options.svg, subject)
    return report_on_trace(
        traced.dag, folded, subject, traced.tracer.notes, traced.failure, options.save
    )


def _ignore_folder(path: Path) -> None:
    """What is kept beside a project stays out of its version control."""
    for parent in path.parents:
        if parent.name == ".torchstone":
            parent.mkdir(parents=True, exist_ok=True)
            keep_out_of_git(parent)


def plan_command(options: PlanOptions) -> Report:
    """`flow plan`: the report, and the plan in a file."""
    dag, data = load_graph(options.trace)
    manager = OptimizerManager(k=options.parts)
    result = manager.optimize(dag)
    profile = (
        load_profile(options.profile)
        if options.profile
        else profile_for(options.device, options.model)
    )
    made = manager.get_migration_plan(
        result["optimized_partitions"],
        result["coarsened_dag"],
        1,
        device=options.device,
        profile=replace(profile, name=options.device),
        goal=options.goal,
        batch=options.batch,
        program=str(data.get("program", "")),
        program_hash=str(data.get("program_hash", "")),
    )
    if options.save:
        _ignore_folder(Path(options.save))
        write_atomically(Path(options.save), json.dumps(made, ensure_ascii=False, indent=1))
    plan = plan_from_data(made)
    subject = plan.program or options.trace
    return report_on_plan(plan, dag, result["coarsened_dag"], subject, options.save)


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
