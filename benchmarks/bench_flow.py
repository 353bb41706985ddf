"""`flow`: what tracing costs, which edges it finds, how good placements are, what folding takes."""

from __future__ import annotations

import cProfile
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import cv2
import pymetis
import viztracer

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.flow import (  # noqa: E402
    accuracy,
    programs_held_out,
    programs_tuned,
    programs_unseen,
)
from benchmarks.flow.pipelines import (  # noqa: E402
    HOT_LOOPS,
    IMAGES,
    JPEGS,
    fibonacci,
    prepare,
    prepare_files,
)
from tests.dataflow.placement.problems import optimum, random_problem  # noqa: E402

from torchstone.core.answer import Answer  # noqa: E402
from torchstone.core.report import Report  # noqa: E402
from torchstone.core.text import Text  # noqa: E402
from torchstone.dataflow import DAGBuilder, EnhancedTracer, ExecutionDAG, GraphCoarsening  # noqa: E402
from torchstone.dataflow.placement.min_cut import best_cut  # noqa: E402
from torchstone.dataflow.placement.pipelined import best_pipelined  # noqa: E402
from torchstone.dataflow.placement.problem import HOST, PlacementProblem, cost_of  # noqa: E402
from torchstone.dataflow.view.pictures import graph_picture  # noqa: E402
from torchstone.render import render  # noqa: E402

_ROUNDS = 9
_LOOPS = 200_000
"""Rounds of a hot loop: its first 512 rounds, with hooks, are in the figure."""
_WARM = "the same, second round of 60 images"
"""The first round of a trace compiles the hooks and learns what is called."""


def run() -> str:
    cv2.setNumThreads(1)
    return "\n".join(["## flow\n", _overhead(), _hot_loops(), _edges(), _placement(), _sizes()])


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def _traced() -> Iterator[None]:
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    fibonacci(12)  # warm-up: functions without data shed their hooks
    try:
        yield
    finally:
        tracer.stop_tracing()


@contextmanager
def _profiled() -> Iterator[None]:
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()


@contextmanager
def _viztraced(arguments: bool = False) -> Iterator[None]:
    tracer = viztracer.VizTracer(
        verbose=0, log_func_args=arguments, log_func_retval=arguments, tracer_entries=5_000_000
    )
    tracer.start()
    try:
        yield
    finally:
        tracer.stop()
        tracer.clear()


def _overhead() -> str:
    work: dict[str, Callable[[], object]] = {
        "images, 256 → 224 pixels, 9 operators": lambda: prepare(IMAGES[:60]),
        _WARM: lambda: prepare(IMAGES[:60]),
        "the same from JPEG files in memory": lambda: prepare_files(JPEGS[:60]),
        "calls in pure Python, after warm-up": lambda: fibonacci(22),
    }
    tools: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "torchstone": _traced,
        "cProfile": _profiled,
        "VizTracer": _viztraced,
        "VizTracer with arguments and results": lambda: _viztraced(True),
    }
    rows = [f"| CPU time, ratio to untraced | {' | '.join(tools)} |", "|---|" + "--:|" * len(tools)]
    for name, program in work.items():
        program()
        ratios: dict[str, list[float]] = {tool: [] for tool in tools}
        for tool, around in tools.items():
            # it writes every array as text: one round shows it
            for _ in range(1 if "arguments" in tool else _ROUNDS):
                before = _cpu(program)
                with around():
                    if name == _WARM:
                        program()
                    during = _cpu(program)
                ratios[tool].append(2 * during / (before + _cpu(program)))
        rows.append(f"| {name} | {' | '.join(_shown(ratios[tool]) for tool in tools)} |")
    note = "\nMedian of the rounds, each beside a run before and after it; in brackets the middle half. Only Torchstone records which data went where.\n"
    return "### Cost of tracing\n\n" + "\n".join(rows) + "\n" + note


def _hot_loops() -> str:
    """One call with a loop of many rounds: a running frame keeps its code, hooks come off one by one."""
    rows = [f"| one call, {_LOOPS:,} rounds | CPU time, ratio to untraced |", "|---|--:|"]
    for loop in HOT_LOOPS:
        ratios = []
        for _ in range(5):
            before = _cpu(lambda loop=loop: loop(_LOOPS))
            tracer = EnhancedTracer(track_memory=False)
            tracer.start_tracing()
            during = _cpu(lambda loop=loop: loop(_LOOPS))
            tracer.stop_tracing()
            ratios.append(2 * during / (before + _cpu(lambda loop=loop: loop(_LOOPS))))
        rows.append(f"| {loop.__name__} | {_shown(ratios)} |")
    return "### Hot loops inside one call\n\n" + "\n".join(rows) + "\n"


def _shown(ratios: list[float]) -> str:
    if len(ratios) < 4:
        return f"{statistics.median(ratios):.2f}"
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def _edges() -> str:
    rows = ["| programs | true edges | found | false |", "|---|--:|--:|--:|"]
    for name, module in (
        ("tuned on", programs_tuned),
        ("kept aside at first", programs_held_out),
        ("written afterwards", programs_unseen),
    ):
        scores = accuracy.score_together(accuracy.programs(module))
        true, found, false = accuracy.total(scores)
        rows.append(f"| {len(scores)} {name} | {true} | {found / true:.1%} | {false / true:.1%} |")
    note = (
        "\nWhen the programs kept aside were first scored, 70 of 76 edges were found and 6 were false: 3 labels "
        "were wrong (operators left out or misnamed), and drawing with PIL was not followed. Both were corrected "
        "before the figures above; the last set was scored after that (a crash that it uncovered was fixed, one "
        "label misnamed an operator). None of the three sets is blind any more.\n"
    )
    return "### Edges of hand-labelled programs\n\n" + "\n".join(rows) + "\n" + note


def _placement() -> str:
    worst = {"cut": 0.0, "cpu": 0.0, "device": 0.0, "metis": 0.0, "pipe": 0.0, "gap": 0.0}
    graphs = [(20, 0), (60, 1), (120, 2), (250, 3), (400, 4), (480, 5)]
    for count, seed in graphs:
        problem = random_problem(count, seed)
        best = optimum(problem)
        everything = _everything(problem)
        for name, moved in (("cut", best_cut(problem)), ("cpu", frozenset()), ("device", everything), ("metis", _metis(problem))):  # fmt: skip
            cost = cost_of(problem, moved).one_after_the_other
            worst[name] = max(worst[name], cost / best - 1)
        piped = best_pipelined(problem)
        over = cost_of(problem, piped.moved).overlapped
        worst["gap"] = max(worst["gap"], over / piped.bound - 1)
        if count <= 60:  # the integer program of larger ones takes minutes
            worst["pipe"] = max(worst["pipe"], over / optimum(problem, overlapped=True) - 1)
    large = random_problem(10_000, 9)
    seconds = min(_cpu(lambda: best_cut(large)) for _ in range(3))
    rows = [
        "| | |", "|---|--:|",
        f"| minimum cut above the optimum (HiGHS), worst of {len(graphs)} graphs of 20 to 480 operators | {worst['cut']:.1e} |",
        f"| all on the CPU above the optimum, worst | {worst['cpu']:.0%} |",
        f"| all that can move on the device, worst | {worst['device']:.0%} |",
        f"| METIS, two balanced parts, the better one on the device, worst | {worst['metis']:.0%} |",
        f"| pipelined: above the optimum (up to 60 operators), worst | {worst['pipe']:.1%} |",
        f"| pipelined: above its own bound, worst | {worst['gap']:.1%} |",
        f"| minimum cut of 10,000 operators, CPU seconds | {seconds:.2f} |",
    ]  # fmt: skip
    return "### Placement\n\n" + "\n".join(rows) + "\n"


def _everything(problem: PlacementProblem) -> frozenset[int]:
    return frozenset(p for p, op in enumerate(problem.operators) if op.device_seconds is not None)


def _metis(problem: PlacementProblem) -> frozenset[int]:
    """Two balanced parts with the smallest cut; what cannot move stays behind."""
    near: list[set[int]] = [set() for _ in problem.operators]
    for datum in problem.data:
        for user in datum.users:
            if HOST not in (datum.maker, user):
                near[datum.maker].add(user)
                near[user].add(datum.maker)
    _, parts = pymetis.part_graph(2, adjacency=[sorted(item) for item in near])
    able = _everything(problem)
    halves = [frozenset(p for p in able if parts[p] == side) for side in (0, 1)]
    return min(halves, key=lambda moved: cost_of(problem, moved).one_after_the_other)


def _chains(count: int) -> ExecutionDAG:
    """Images through five operators, and a stack of all."""
    rng = random.Random(0)
    builder = DAGBuilder()
    stack = builder.add_function_node("numpy.stack")
    for _ in range(count // 10):
        before = None
        for name in ("load", "resize", "colour", "blur", "divide"):
            op = builder.add_function_node(name)
            builder.dag.nodes[op].performance = {"execution_time": rng.random()}
            if before is not None:
                builder.add_edge(before, op, "uses")
            before = builder.add_variable_node(f"{name}_return")
            builder.add_edge(op, before, "produces")
        builder.add_edge(before, stack, "uses")
    return builder.dag


def _sizes() -> str:
    dag = _chains(20_000)
    folding = min(_cpu(lambda: GraphCoarsening().coarsen(dag)) for _ in range(3))
    folded = GraphCoarsening().coarsen(dag)
    picture = graph_picture(dag, folded, {})
    page = render(Report("flow", answer=Answer(Text("", ""), pictures=(picture,))), "html")
    rows = [
        "| | |", "|---|--:|",
        f"| folding {len(dag.nodes):,} nodes into {len(folded.nodes)}, CPU seconds | {folding:.2f} |",
        f"| page with a graph of {len(picture.vertices):,} operators | {len(page.encode()) / 1e6:.2f} MB |",
    ]  # fmt: skip
    return "### Folding and pages\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(run())
