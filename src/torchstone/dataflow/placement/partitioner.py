"""A graph in k parts: balanced, with few bytes between them, and never in a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import REGION, VARIABLE, ExecutionDAG

_EXACT = 400  # nodes: a walk from each takes a tenth of a second


@dataclass(slots=True)
class Partition:
    """One part: its centre is the node that weighs most in it."""

    id: int
    center: int
    nodes: list[int] = field(default_factory=list)
    total_compute: float = 0.0
    """Seconds."""


def node_seconds(dag: ExecutionDAG) -> dict[int, float]:
    """By warm calls. Functions of the user with operators inside weigh nothing: only what is inside has
    a place."""
    return {
        node_id: 0.0 if node.role == REGION else node.performance.get("warm", node.seconds)
        for node_id, node in dag.nodes.items()
    }


def edge_bytes(dag: ExecutionDAG) -> list[tuple[int, int, float]]:
    """Every edge with the bytes that go along it."""
    sizes: list[tuple[int, int, float]] = []
    for source, target, _ in dag.edges:
        ends = dag.nodes[source], dag.nodes[target]
        variable = next((node for node in ends if node.node_type == VARIABLE), None)
        if variable is not None:
            size = variable.performance.get("bytes", float(variable.nbytes))
        else:
            size = ends[0].performance.get("bytes_out", 0.0)
        sizes.append((source, target, size))
    return sizes


def load_balance(partitions: list[Partition]) -> float:
    """The mean load as a share of the largest: 1 is perfect."""
    loads = [partition.total_compute for partition in partitions]
    top = max(loads, default=0.0)
    return sum(loads) / len(loads) / top if top else 1.0


class KWayPartitioner:
    """Consecutive stretches of a topological order, cut where they are balanced and few bytes cross.

    `alpha` weighs the balance of the loads, `gamma` how steeply imbalance counts, `beta` the bytes
    that cross. `lambda_weight` decides what makes a centre: distance from the other centres (1) or
    its own time (0)."""

    def __init__(
        self,
        k: int = 2,
        lambda_weight: float = 0.5,
        alpha: float = 1.0,
        beta: float = 0.5,
        gamma: float = 1.0,
    ) -> None:
        if k < 1:
            raise UsageError(
                "KWayPartitioner", f"k={k}", Text("1 or more parts", "至少 1 个分区"),
                Text("pass the number of parts", "请传入分区数"),
            )  # fmt: skip
        self.k = k
        self.lambda_weight = lambda_weight
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.node_weights: dict[int, float] = {}
        """Seconds of every node of the graph that was cut last."""
        self.max_weight = 0.0
        self.diameter = 0
        """Steps between the two nodes that are farthest apart, whichever way edges point."""
        self.center_distances: dict[int, dict[int, int]] = {}
        """Node → centre → steps between them; a centre that cannot be reached is not there."""

    def partition(self, dag: ExecutionDAG) -> list[Partition]:
        """At most k parts; fewer where there are fewer nodes."""
        order = _chains_together(dag)
        seconds = self.node_weights = node_seconds(dag)
        self.max_weight = max(seconds.values(), default=0.0)
        near = _neighbours(dag)
        self.diameter = _diameter(near)
        self.center_distances = {node_id: {} for node_id in dag.nodes}
        if not order:
            return []
        cuts = self._cuts(order, seconds, _crossing(dag, order), min(self.k, len(order)))
        parts: list[Partition] = []
        for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
            nodes = order[start:end]
            center = self._center(nodes, seconds, [part.center for part in parts], order)
            parts.append(Partition(len(parts), center, nodes, sum(seconds[n] for n in nodes)))
            for node_id, steps in _steps_from(center, near).items():
                self.center_distances[node_id][center] = steps
        return parts

    def _cuts(
        self, order: list[int], seconds: dict[int, float], crossing: list[float], k: int
    ) -> list[int]:
        """Where the order is cut: each cut near its share of the work, where little crosses."""
        total = sum(seconds.values()) or 1.0
        most = max(crossing, default=0.0) or 1.0
        before = [0.0]
        for node_id in order:
            before.append(before[-1] + seconds[node_id])
        cuts: list[int] = []
        for number in range(1, k):
            low = (cuts[-1] if cuts else 0) + 1
            high = len(order) - (k - number)
            wanted = total * number / k

            def price(place: int, wanted: float = wanted) -> float:
                off = abs(before[place] - wanted) / (total / k)
                return (
                    self.alpha * float(off ** (1 + self.gamma)) + self.beta * crossing[place] / most
                )

            cuts.append(min(range(low, high + 1), key=price))
        return cuts

    def _center(
        self, nodes: list[int], seconds: dict[int, float], others: list[int], order: list[int]
    ) -> int:
        place = {node_id: number for number, node_id in enumerate(order)} if others else {}
        top = max((seconds[n] for n in nodes), default=0.0) or 1.0

        def score(node_id: int) -> float:
            far = min((abs(place[node_id] - place[o]) for o in others), default=0) / len(order)
            return self.lambda_weight * far + (1 - self.lambda_weight) * seconds[node_id] / top

        return max(nodes, key=score)


def _neighbours(dag: ExecutionDAG) -> dict[int, list[int]]:
    near: dict[int, list[int]] = {node_id: [] for node_id in dag.nodes}
    for source, target, _ in dag.edges:
        near[source].append(target)
        near[target].append(source)
    return near


def _steps_from(start: int, near: Mapping[int, Sequence[int]]) -> dict[int, int]:
    steps = {start: 0}
    waiting = deque([start])
    while waiting:
        node_id = waiting.popleft()
        for other in near[node_id]:
            if other not in steps:
                steps[other] = steps[node_id] + 1
                waiting.append(other)
    return steps


def _diameter(near: Mapping[int, Sequence[int]]) -> int:
    """Exact for graphs of a few hundred nodes; of larger ones the longest of two walks, from any
    node to the farthest and from there: at least half of it, mostly all."""
    if len(near) <= _EXACT:
        return max((max(_steps_from(node_id, near).values()) for node_id in near), default=0)
    first = _steps_from(next(iter(near)), near)
    return max(_steps_from(max(first, key=first.__getitem__), near).values())


def _chains_together(dag: ExecutionDAG) -> list[int]:
    """A topological order that follows a chain to its end; nodes of a cycle come last."""
    order = dag.topological_order()
    known = set(order)
    return [*order, *(node_id for node_id in dag.nodes if node_id not in known)]


def _crossing(dag: ExecutionDAG, order: list[int]) -> list[float]:
    """Bytes that cross a cut before each place of the order."""
    place = {node_id: number for number, node_id in enumerate(order)}
    change = [0.0] * (len(order) + 1)
    for source, target, size in edge_bytes(dag):
        low, high = sorted((place[source], place[target]))
        change[low + 1] += size
        change[high + 1 if high + 1 <= len(order) else high] -= size
    crossing, now = [], 0.0
    for step in change:
        now += step
        crossing.append(now)
    return crossing
