"""A traced graph as pictures of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchstone.core.pictures import DataGraph, DataVertex, Link, Part, Stack
from torchstone.core.text import Text, Words
from torchstone.dataflow.graph.dag import PRODUCES, USES, DAGNode, ExecutionDAG

_PARTS = 7
"""Functions that have a part of the bar of their own."""
_MOST = 20_000
"""Operators in the picture of a report; the file of the trace has all."""


def operator_links(dag: ExecutionDAG) -> list[tuple[int, int]]:
    """Edges between operators, by node id, through the variables between them."""
    operators = {node.node_id for node in dag.operators()}
    makers: dict[int, list[int]] = defaultdict(list)
    found: dict[tuple[int, int], None] = {}
    for source, target, kind in dag.edges:
        if kind == PRODUCES and source in operators:
            makers[target].append(source)
        elif source in operators and target in operators:
            found[source, target] = None
    for source, target, kind in dag.edges:
        if kind == USES and target in operators:
            for maker in makers.get(source, ()):
                if maker != target:
                    found[maker, target] = None
    return list(found)


def graph_picture(
    dag: ExecutionDAG, folded: ExecutionDAG, devices: Mapping[int, str] | None = None
) -> DataGraph:
    """All operators, with the class that each is folded into; with devices, before and after."""
    classes = {member: node.node_id for node in folded.nodes.values() for member in node.members}
    shown = sorted(dag.operators(), key=lambda node: node.start)[:_MOST]
    places = {node.node_id: place for place, node in enumerate(shown)}
    links = [
        Link(places[source], places[target])
        for source, target in operator_links(dag)
        if source in places and target in places
    ]
    vertices = [_vertex(node, classes.get(node.node_id, node.node_id), devices) for node in shown]
    how = Text(
        "repeated operators are grouped; arrows show data flow",
        "结构相同的算子已折叠；箭头表示数据",
    )
    stages = (
        (Text("as traced", "追踪时"), Text("as planned", "按计划")) if devices is not None else ()
    )
    return DataGraph(Text("The pipeline", "数据管道"), tuple(vertices), tuple(links), stages, how)


def _vertex(node: DAGNode, fold: int, devices: Mapping[int, str] | None) -> DataVertex:
    where = f"{Path(node.file).name}:{node.line}" if node.file else ""
    both = ("cpu", devices.get(fold, "cpu")) if devices is not None else ()
    made = int(node.performance.get("bytes_out", 0))
    return DataVertex(node.name, fold, node.seconds, made, both, where)


def time_stack(functions: Sequence[tuple[Words, float]], how: Text) -> Stack:
    """Where the time goes, the slowest functions first."""
    parts = [Part(name, seconds) for name, seconds in functions[:_PARTS]]
    rest = sum(seconds for _, seconds in functions[_PARTS:])
    if rest:
        parts.append(Part(Text("others", "其他"), rest))
    return Stack(Text("Where the time goes", "时间去向"), tuple(parts), "s", how)
