"""Nodes and edges, one after the other; variables get a new version each time."""

from __future__ import annotations

from collections import Counter

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import FUNCTION, VARIABLE, DAGNode, ExecutionDAG


class DAGBuilder:
    """Makes an ExecutionDAG."""

    def __init__(self) -> None:
        self.dag = ExecutionDAG()
        self.node_counter = 0
        self._versions: Counter[str] = Counter()
        self._edges: set[tuple[int, int, str]] = set()

    def add_function_node(self, name: str, context: str = "") -> int:
        return self._add(DAGNode(self.node_counter, name, FUNCTION, context=context or name))

    def add_variable_node(self, name: str, version: int | None = None) -> int:
        """The next version of a variable, or the one that is named."""
        self._versions[name] = self._versions[name] + 1 if version is None else version
        node = DAGNode(self.node_counter, name, VARIABLE, version=self._versions[name])
        return self._add(node)

    def describe(self, node: DAGNode) -> None:
        """Put a node with more facts in the place of the one of its number."""
        self.dag.nodes[node.node_id] = node

    def _add(self, node: DAGNode) -> int:
        self.dag.nodes[node.node_id] = node
        self.node_counter += 1
        return node.node_id

    def add_edge(self, source: int, target: int, kind: str) -> None:
        """Both ends must exist; an edge is kept once."""
        for end in (source, target):
            if end not in self.dag.nodes:
                raise UsageError(
                    "DAGBuilder.add_edge",
                    f"node {end}",
                    Text("a node that exists", "已存在的节点"),
                    Text(
                        "add it with add_function_node or add_variable_node first",
                        "请先用 add_function_node 或 add_variable_node 添加",
                    ),
                )
        edge = (source, target, kind)
        if edge not in self._edges:
            self._edges.add(edge)
            self.dag.edges.append(edge)
