"""A graph as SVG, drawn by Graphviz: layers from top to bottom, a style for each kind."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import UsageError
from torchstone.core.files import write_atomically
from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import DAGNode, Edge, ExecutionDAG

_MOST = 1_500
"""Nodes that Graphviz lays out within seconds; at 3,000 it takes twenty, at 10,000 minutes."""
_FOLD_ABOVE = 120
"""Nodes beyond which a person no longer reads the graph as it is."""


@dataclass(frozen=True, slots=True)
class NodeStyle:
    """How one type of node looks."""

    shape: str
    style: str
    fillcolor: str


class GraphvizDataflowVisualizer:
    """Nodes by `node_type`, edges by kind; both tables may be changed before drawing."""

    def __init__(self) -> None:
        self.node_styles = {
            "function_call": NodeStyle("box", "rounded,filled", "#cfe2f3"),
            "region": NodeStyle("folder", "filled", "#fff2cc"),
            "variable": NodeStyle("ellipse", "filled", "#d9ead3"),
        }
        self.edge_styles = {
            "uses": {"color": "#3d85c6", "style": "solid"},
            "produces": {"color": "#38761d", "style": "bold"},
            "calls": {"color": "#999999", "style": "dashed"},
        }

    def generate_dataflow_svg(
        self,
        nodes: Iterable[DAGNode],
        edges: Iterable[Edge],
        output_path: str,
        title: str = "",
    ) -> bool:
        """Write the drawing; True when it is there."""
        drawn = list(nodes)
        if len(drawn) > _MOST:
            raise UsageError(
                "generate_dataflow_svg", f"{len(drawn):,} nodes",
                Text(f"at most {_MOST:,} nodes", f"至多 {_MOST:,} 个节点"),
                Text("fold the graph first (GraphCoarsening), or use the HTML report",
                     "请先折叠图（GraphCoarsening），或使用 HTML 报告"),
            )  # fmt: skip
        source = self.dot_source(drawn, list(edges), title)
        write_atomically(Path(output_path), _layout(source))
        return True

    def dot_source(self, nodes: Sequence[DAGNode], edges: Sequence[Edge], title: str = "") -> str:
        """The graph in Graphviz's own language."""
        lines = [
            "digraph dataflow {",
            f"label={_quoted(title)}; labelloc=t; rankdir=TB; splines=spline; nodesep=0.8; ranksep=1.2;",
            'node [fontname="Helvetica", fontsize=11]; edge [fontname="Helvetica", fontsize=9];',
        ]
        known = {node.node_id for node in nodes}
        lines += [self._node(node) for node in nodes]
        for layer in self.organize_nodes_by_layer(nodes, edges).values():
            lines.append("{rank=same; " + " ".join(f"n{node.node_id};" for node in layer) + "}")
        lines += [self._edge(edge) for edge in edges if edge[0] in known and edge[1] in known]
        return "\n".join([*lines, "}"])

    def organize_nodes_by_layer(
        self, nodes: Sequence[DAGNode], edges: Sequence[Edge]
    ) -> Mapping[int, list[DAGNode]]:
        """Layers by the longest path from a source."""
        part = ExecutionDAG({node.node_id: node for node in nodes}, [])
        part.edges = [e for e in edges if e[0] in part.nodes and e[1] in part.nodes]
        before = part.predecessors()
        depth: dict[int, int] = {}
        for node_id in part.topological_order():
            depth[node_id] = max(
                (depth[o] + 1 for o in before.get(node_id, ()) if o in depth), default=0
            )
        layers: dict[int, list[DAGNode]] = defaultdict(list)
        for node in nodes:
            layers[depth.get(node.node_id, 0)].append(node)
        return dict(sorted(layers.items()))

    def _node(self, node: DAGNode) -> str:
        kind = "region" if node.role == "region" else node.node_type
        style = self.node_styles.get(kind, self.node_styles["variable"])
        look = f'shape={style.shape}, style="{style.style}", fillcolor="{style.fillcolor}"'
        return f"n{node.node_id} [label=<{_label(node)}>, {look}];"

    def _edge(self, edge: Edge) -> str:
        source, target, kind = edge
        look = self.edge_styles.get(kind, {"color": "gray"})
        shown = ", ".join(f"{key}={_quoted(value)}" for key, value in look.items())
        return f"n{source} -> n{target} [label={_quoted(kind)}, {shown}];"


def draw_dag(dag: ExecutionDAG, path: str, title: str = "") -> bool:
    """The graph as SVG; folded when it is too large to be read or drawn."""
    from torchstone.dataflow.placement.coarsening import GraphCoarsening

    if len(dag.nodes) > _FOLD_ABOVE:
        dag = GraphCoarsening().coarsen(dag)
    return GraphvizDataflowVisualizer().generate_dataflow_svg(
        dag.nodes.values(), dag.edges, path, title
    )


def _layout(source: str) -> bytes:
    try:
        import pygraphviz  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(
            "generate_dataflow_svg", "no pygraphviz", Text("pygraphviz 2", "pygraphviz 2"),
            'pip install "torchstone[flow]"',
        ) from None  # fmt: skip
    graph = pygraphviz.AGraph(string=source)
    drawn: bytes = graph.draw(format="svg", prog="dot")
    return drawn


def _label(node: DAGNode) -> str:
    """Name, then what is known of it, as Graphviz's own HTML."""
    name = node.name if not node.version else f"{node.name} v{node.version}"
    count = f" ×{node.count:,}" if node.count > 1 else ""
    facts = []
    if seconds := node.performance.get("execution_time"):
        facts.append(human(seconds, "s"))
    if node.shape:
        facts.append(f"{'×'.join(map(str, node.shape))} {node.dtype}".strip())
    if nbytes := node.performance.get("bytes", float(node.nbytes)):
        facts.append(human(nbytes, "B"))
    lines = [
        f"<B>{_plain(name + count)}</B>",
        *(f'<FONT POINT-SIZE="9">{_plain(item)}</FONT>' for item in facts),
    ]
    return "<BR/>".join(lines)


def _plain(text: str) -> str:
    return html.escape("".join(c if c.isprintable() else "�" for c in text))


def _quoted(text: str) -> str:
    safe = "".join(c if c.isprintable() else " " for c in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"') + '"'
