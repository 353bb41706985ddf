"""The graph of a run: calls and operators, the variables between them, and who used what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

FUNCTION, VARIABLE = "function_call", "variable"
USES, PRODUCES = "uses", "produces"
OPERATOR, REGION = "operator", "region"


@dataclass(slots=True)
class DAGNode:
    """One call, operator, or version of a variable."""

    node_id: int
    name: str
    node_type: str
    """`function_call` or `variable`."""
    performance: dict[str, float] = field(default_factory=dict)
    """`execution_time` in seconds (with the calls inside it), `self_time` (without), `bytes_in`,
    `bytes_out`, `count` and, for folded nodes, `variance` of the time of one call. Of a variable,
    `held`: how many of its values the program still held when the trace ended."""
    context: str = ""
    """The user's functions that lead to it, and itself; see `plan.context_key`."""
    version: int = 0
    """Of a variable: 1 when its name is first bound, 2 when it is bound or written again."""
    role: str = ""
    """`operator` does work on data; `region` is a function of the user's with operators inside."""
    file: str = ""
    line: int = 0
    thread: str = ""
    start: float = 0.0
    """Seconds since the start of the trace."""
    parent: int = -1
    """The region that it is part of."""
    nbytes: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    kind: str = ""
    arguments: str = ""
    """Numbers and texts among its arguments."""
    error: str = ""
    members: tuple[int, ...] = ()
    """Of a folded node: the nodes it stands for."""

    @property
    def seconds(self) -> float:
        """Time of its own: without what the calls inside it took."""
        whole = self.performance.get("execution_time", 0.0)
        return self.performance.get("self_time", whole)

    @property
    def count(self) -> int:
        return int(self.performance.get("count", 1))


Edge = tuple[int, int, str]


@dataclass(slots=True)
class ExecutionDAG:
    """Nodes by id, and edges of `(source, target, kind)`."""

    nodes: dict[int, DAGNode] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def successors(self) -> dict[int, list[int]]:
        out: dict[int, list[int]] = defaultdict(list)
        for source, target, _ in self.edges:
            out[source].append(target)
        return out

    def predecessors(self) -> dict[int, list[int]]:
        into: dict[int, list[int]] = defaultdict(list)
        for source, target, _ in self.edges:
            into[target].append(source)
        return into

    def functions(self) -> Iterator[DAGNode]:
        return (node for node in self.nodes.values() if node.node_type == FUNCTION)

    def operators(self) -> Iterator[DAGNode]:
        """Calls that do work of their own."""
        return (node for node in self.functions() if node.role != REGION)

    def topological_order(self) -> list[int]:
        """Every node behind what it depends on; nodes of a cycle are left out."""
        following = self.successors()
        waiting = dict.fromkeys(self.nodes, 0)
        for _, target, _ in self.edges:
            waiting[target] += 1
        ready = [node for node, count in waiting.items() if not count]
        order: list[int] = []
        while ready:
            node = ready.pop()
            order.append(node)
            for target in following.get(node, ()):
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
        return order

    def is_acyclic(self) -> bool:
        return len(self.topological_order()) == len(self.nodes)
