"""Equal structure folds; different wirings never do."""

from __future__ import annotations

import pytest

from torchstone.core.errors import UsageError
from torchstone.dataflow import DAGBuilder, ExecutionDAG, GraphCoarsening


def graph(operators: list[str], edges: list[tuple[int, int]]) -> ExecutionDAG:
    builder = DAGBuilder()
    for name in operators:
        builder.dag.nodes[builder.add_function_node(name)].performance = {"execution_time": 1.0}
    for source, target in edges:
        builder.add_edge(source, target, "uses")
    return builder.dag


def test_a_loop_folds_with_counts_sums_and_variance() -> None:
    dag = graph(
        ["load", "resize"] * 3 + ["stack"], [(0, 1), (2, 3), (4, 5), (1, 6), (3, 6), (5, 6)]
    )
    for place, seconds in ((1, 1.0), (3, 2.0), (5, 3.0)):
        dag.nodes[place].performance["execution_time"] = seconds
    folded = GraphCoarsening().coarsen(dag)
    assert [(n.name, n.count) for n in folded.nodes.values()] == [
        ("load", 3), ("resize", 3), ("stack", 1),
    ]  # fmt: skip
    resize = folded.nodes[1]
    assert resize.performance["execution_time"] == 6.0
    assert resize.performance["mean"] == 2.0
    assert resize.performance["variance"] == pytest.approx(2 / 3)
    assert resize.members == (1, 3, 5)
    assert folded.edges == [(0, 1, "uses"), (1, 6, "uses")]
    assert sum(n.performance["execution_time"] for n in folded.nodes.values()) == sum(
        n.performance["execution_time"] for n in dag.nodes.values()
    )


def test_the_three_wirings_that_one_hash_took_for_one() -> None:
    """A→B, A→C and then B→D, or C→D, or both: side by side nothing of them may fold."""
    wirings = [[(1, 3)], [(2, 3)], [(1, 3), (2, 3)]]
    names: list[str] = []
    edges: list[tuple[int, int]] = []
    for wiring in wirings:
        base = len(names)
        names += ["A", "B", "C", "D"]
        edges += [(base + a, base + b) for a, b in [(0, 1), (0, 2), *wiring]]
    folded = GraphCoarsening().coarsen(graph(names, edges))
    assert len(folded.nodes) == 12


def test_rings_that_look_alike_stay_apart() -> None:
    """A ring of six and two rings of three: every node looks the same from every distance."""

    def ring(size: int, base: int) -> list[tuple[int, int]]:
        sources = range(base, base + size)
        sinks = range(base + size, base + 2 * size)
        return [(s, t) for n, s in enumerate(sources) for t in (sinks[n], sinks[(n + 1) % size])]

    names = ["A"] * 6 + ["B"] * 6 + (["A"] * 3 + ["B"] * 3) * 2
    edges = ring(6, 0) + ring(3, 12) + ring(3, 18)
    folded = GraphCoarsening().coarsen(graph(names, edges))
    groups = [set(node.members) for node in folded.nodes.values()]
    large, small = set(range(12)), set(range(12, 24))
    assert all(group <= large or group <= small for group in groups)


def test_one_input_twice_is_not_two_inputs() -> None:
    builder = DAGBuilder()
    for same in (True, False):
        x, y = builder.add_variable_node("x"), builder.add_variable_node("x")
        add = builder.add_function_node("add")
        builder.add_edge(x, add, "uses")
        builder.add_edge(x if same else y, add, "uses2")
    folded = GraphCoarsening().coarsen(builder.dag)
    assert sum(node.name == "add" for node in folded.nodes.values()) == 2


def test_an_index_does_not_keep_calls_apart_but_a_flag_does() -> None:
    builder = DAGBuilder()
    for number in range(6):
        item = builder.dag.nodes[builder.add_function_node("getitem")]
        item.arguments = str(number)
        flip = builder.dag.nodes[builder.add_function_node("flip")]
        flip.arguments = str(number % 2)
    folded = GraphCoarsening().coarsen(builder.dag)
    counts = sorted((n.name, n.count) for n in folded.nodes.values())
    assert counts == [("flip", 3), ("flip", 3), ("getitem", 6)]


def test_labels_that_come_back_do_not_keep_samples_apart_but_sizes_do() -> None:
    """Batches of samples whose label is made by torch.tensor(label): the label is data. A size that
    an empty array is made with is structure."""
    builder = DAGBuilder()
    dag = builder.dag
    for batch in ((0, 1, 1, 2), (2, 2, 0, 1), (0, 0, 1, 2)):
        collate = builder.add_function_node("collate")
        for label in batch:
            for name, shape in (("tensor", ()), ("empty", (label,))):
                call = builder.add_function_node(name)
                dag.nodes[call].arguments = str(label)
                made = builder.add_variable_node(name)
                dag.nodes[made].shape = shape
                builder.add_edge(call, made, "produces")
                if name == "tensor":
                    builder.add_edge(made, collate, "uses")
    folded = GraphCoarsening().coarsen(dag)
    counts = sorted((n.name, n.count) for n in folded.operators())
    assert counts == [("collate", 3), ("empty", 4), ("empty", 4), ("empty", 4), ("tensor", 12)]


def test_folding_twice_changes_nothing_and_the_result_is_acyclic() -> None:
    dag = graph(["a", "b", "c"] * 5, [(n, n + 1) for n in range(14) if (n + 1) % 3])
    once = GraphCoarsening().coarsen(dag)
    twice = GraphCoarsening().coarsen(once)
    assert len(once.nodes) == len(twice.nodes) == 3
    assert twice.nodes[0].count == 5
    assert once.is_acyclic()


def test_empty_and_wrong() -> None:
    assert not GraphCoarsening().coarsen(ExecutionDAG()).nodes
    with pytest.raises(UsageError):
        GraphCoarsening(0)
