"""Parts made better by single moves: balance, the longest part, and the bytes between them."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict

from torchstone.dataflow.graph.dag import ExecutionDAG
from torchstone.dataflow.placement.partitioner import Partition, edge_bytes, node_seconds

_STATS = ("iterations", "moves", "initial_objective", "best_objective", "cut_bytes")


class IterativeOptimizer:
    """Moves one node at a time, the largest gain first; a move never makes a circle of parts.

    The objective is `alpha` × the coefficient of variation of the loads + `beta` × the longest path
    through one part relative to the mean + `gamma` × the share of bytes that cross."""

    def __init__(
        self,
        max_iterations: int = 100,
        alpha: float = 0.5,
        beta: float = 0.1,
        gamma: float = 0.5,
        no_improvement_threshold: int = 10,
    ) -> None:
        self.max_iterations = max_iterations
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.no_improvement_threshold = no_improvement_threshold
        self.stats: dict[str, float] = dict.fromkeys(_STATS, 0)
        """How far the moves came."""
        self.cp_lengths: dict[int, float] = {}
        """Part → seconds of the longest path inside it."""

    def optimize(self, partitions: list[Partition], dag: ExecutionDAG) -> list[Partition]:
        """New parts; those given stay as they are."""
        if not partitions:
            return []
        state = _Parts(partitions, dag)
        start = best = self._objective(state)
        heap: list[tuple[float, int, int, int]] = []
        turn = itertools.count()

        def offer(node_id: int) -> None:
            for part in state.allowed(node_id):
                gain = self._gain(state, node_id, part)
                if gain > 0:
                    heapq.heappush(heap, (-gain, next(turn), node_id, part))

        for node_id in state.border():
            offer(node_id)
        iterations = moves = idle = 0
        while heap and iterations < self.max_iterations and idle < self.no_improvement_threshold:
            iterations += 1
            _, _, node_id, part = heapq.heappop(heap)
            if part not in state.allowed(node_id) or self._gain(state, node_id, part) <= 0:
                continue
            state.move(node_id, part)
            moves += 1
            now = self._objective(state)
            idle = 0 if now < best - 1e-12 else idle + 1
            best = min(best, now)
            for other in (node_id, *state.neighbours[node_id]):
                offer(other)
        self.stats = dict(zip(_STATS, (iterations, moves, start, best, state.cut), strict=True))
        paths = state.longest_paths()
        self.cp_lengths = {part.id: paths[place] for place, part in enumerate(partitions)}
        return state.partitions(partitions)

    def _objective(self, state: _Parts) -> float:
        spread = state.load_spread()
        return self.alpha * spread + self.gamma * state.cut_share() + self.beta * state.path_ratio()

    def _gain(self, state: _Parts, node_id: int, part: int) -> float:
        """By how much the objective falls; the longest path is left out, it costs a whole pass."""
        old = state.home[node_id]
        before = self.alpha * state.load_spread() + self.gamma * state.cut_share()
        state.move(node_id, part)
        after = self.alpha * state.load_spread() + self.gamma * state.cut_share()
        state.move(node_id, old)
        return before - after


class _Parts:
    """Where every node is, with the loads and the bytes that cross kept up to date."""

    def __init__(self, partitions: list[Partition], dag: ExecutionDAG) -> None:
        self.seconds = node_seconds(dag)
        self.home = {n: number for number, part in enumerate(partitions) for n in part.nodes}
        self.loads = [sum(self.seconds[n] for n in part.nodes) for part in partitions]
        self.sizes = [len(part.nodes) for part in partitions]
        self.into: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.out: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.neighbours: dict[int, list[int]] = defaultdict(list)
        self.total_bytes = self.cut = 0.0
        self._order = dag.topological_order()
        for source, target, size in edge_bytes(dag):
            if source in self.home and target in self.home:
                self.out[source].append((target, size))
                self.into[target].append((source, size))
                self.neighbours[source].append(target)
                self.neighbours[target].append(source)
                self.total_bytes += size
                self.cut += size * (self.home[source] != self.home[target])

    def border(self) -> list[int]:
        return [
            n for n in self.home if any(self.home[o] != self.home[n] for o in self.neighbours[n])
        ]

    def allowed(self, node_id: int) -> range:
        """Parts are in order and edges never go back: a node fits between its inputs and users."""
        if self.sizes[self.home[node_id]] == 1:
            return range(0)  # no part is left empty
        low = max((self.home[o] for o, _ in self.into[node_id]), default=0)
        high = min((self.home[o] for o, _ in self.out[node_id]), default=len(self.loads) - 1)
        return range(low, high + 1)

    def move(self, node_id: int, part: int) -> None:
        old = self.home[node_id]
        for other, size in (*self.into[node_id], *self.out[node_id]):
            there = self.home[other]
            self.cut += size * ((there != part) - (there != old))
        self.loads[old] -= self.seconds[node_id]
        self.loads[part] += self.seconds[node_id]
        self.sizes[old] -= 1
        self.sizes[part] += 1
        self.home[node_id] = part

    def load_spread(self) -> float:
        mean = sum(self.loads) / len(self.loads) if self.loads else 0.0
        if mean <= 0:
            return 0.0
        variance = sum((load - mean) ** 2 for load in self.loads) / len(self.loads)
        return math.sqrt(variance) / mean

    def cut_share(self) -> float:
        return self.cut / self.total_bytes if self.total_bytes else 0.0

    def path_ratio(self) -> float:
        """The longest path inside one part over the mean of the parts' longest paths."""
        top = self.longest_paths()
        mean = sum(top) / len(top) if top else 0.0
        return max(top) / mean if mean > 0 else 0.0

    def longest_paths(self) -> list[float]:
        """Seconds, for every part."""
        longest: dict[int, float] = {}
        top = [0.0] * len(self.loads)
        for node_id in self._order:
            home = self.home.get(node_id)
            if home is None:
                continue
            before = max(
                (longest[o] for o, _ in self.into[node_id] if self.home[o] == home), default=0.0
            )
            longest[node_id] = before + self.seconds[node_id]
            top[home] = max(top[home], longest[node_id])
        return top

    def partitions(self, like: list[Partition]) -> list[Partition]:
        nodes: list[list[int]] = [[] for _ in like]
        for node_id, part in self.home.items():
            nodes[part].append(node_id)
        return [
            Partition(
                part.id,
                part.center
                if self.home[part.center] == number
                else max(held, key=self.seconds.__getitem__, default=part.center),
                held,
                sum(self.seconds[n] for n in held),
            )
            for number, (part, held) in enumerate(zip(like, nodes, strict=True))
        ]
