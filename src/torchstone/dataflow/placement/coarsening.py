"""Repeated structure becomes one node: exactly, so that different wirings never fold together.

1. Nodes are refined by what they are, by their ordered inputs and by their users, until nothing
   changes (colour refinement). Nodes of one class then look alike from every distance.
2. Looking alike is not enough: a ring of six looks like two rings of three. So the graph is taken
   apart at its unique nodes, piece by piece, and pieces are folded only when a certificate of
   their wiring is equal.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import FUNCTION, PRODUCES, REGION, DAGNode, Edge, ExecutionDAG
from torchstone.dataflow.plan import SEPARATOR, normalize_context_key

_CALL_NUMBER = re.compile(r"#\d+$")
_REPEATED = 2
"""Constant arguments are part of the structure where their values come back, on average so often:
those of a flag or a size do, an index or the corner of a crop is another one each time."""
_ROUNDS = 64  # colour refinement of real graphs ends after two or three


@dataclass(frozen=True, slots=True)
class CoarseningStatistics:
    """What folding did."""

    original_nodes: int
    coarsened_nodes: int
    folded_classes: int
    """Nodes that stand for more than one."""
    largest_class: int


class GraphCoarsening:
    """`max_depth` is how many of the user's functions around a call tell it from others; calls that
    only differ further out count as the same."""

    def __init__(self, max_depth: int = 5) -> None:
        if max_depth < 1:
            raise UsageError(
                "GraphCoarsening", f"max_depth={max_depth}", Text("1 or more", "1 或更大"),
                Text("leave it out for 5", "省略即为 5"),
            )  # fmt: skip
        self.max_depth = max_depth
        self.anchors: dict[str, list[int]] = {}
        """Functions that are called more than once, and their nodes."""
        self.statistics = CoarseningStatistics(0, 0, 0, 0)

    def coarsen(self, dag: ExecutionDAG) -> ExecutionDAG:
        """A new graph; node ids are those of the first node of each class."""
        self.anchors = _repeated_calls(dag)
        classes = _exact_classes(dag, self._labels(dag))
        members: dict[int, list[int]] = defaultdict(list)
        for node_id in dag.nodes:
            members[classes[node_id]].append(node_id)
        representative = {name: ids[0] for name, ids in members.items()}
        folded = ExecutionDAG()
        for ids in members.values():
            folded.nodes[ids[0]] = _merged([dag.nodes[i] for i in ids])
        for node in folded.nodes.values():
            if node.parent in classes:
                node.parent = representative[classes[node.parent]]
        folded.edges = _merged_edges(dag.edges, classes, representative)
        sizes = [len(ids) for ids in members.values()]
        self.statistics = CoarseningStatistics(
            len(dag.nodes),
            len(folded.nodes),
            sum(size > 1 for size in sizes),
            max(sizes, default=0),
        )
        return folded

    def _labels(self, dag: ExecutionDAG) -> dict[int, Hashable]:
        values: dict[Hashable, Counter[str]] = defaultdict(Counter)
        places: dict[int, Hashable] = {}
        for node in dag.nodes.values():
            path = normalize_context_key(node.context).split(SEPARATOR)
            near = tuple(path[-self.max_depth :])
            name = _CALL_NUMBER.sub("", node.name)
            if node.node_type == FUNCTION:
                place: Hashable = (
                    FUNCTION,
                    name,
                    near,
                    node.role,
                    node.file,
                    node.line,
                    node.error,
                )
            else:
                place = (node.node_type, name, node.kind, node.dtype)
            places[node.node_id] = place
            if node.role != REGION:
                values[place][node.arguments] += 1
        made = _places_of_one_form(dag, places)
        telling = {
            place
            for place, found in values.items()
            if len(found) * _REPEATED <= found.total() and place not in made
        }
        return {
            node_id: (place, dag.nodes[node_id].arguments if place in telling else "")
            for node_id, place in places.items()
        }


def _repeated_calls(dag: ExecutionDAG) -> dict[str, list[int]]:
    named: dict[str, list[int]] = defaultdict(list)
    for node in dag.functions():
        named[_CALL_NUMBER.sub("", node.name)].append(node.node_id)
    return {name: ids for name, ids in named.items() if len(ids) > 1}


def _places_of_one_form(dag: ExecutionDAG, places: Mapping[int, Hashable]) -> set[Hashable]:
    """Places that take no data and always make data of one shape and dtype: what they are given is
    the data itself, as the label in torch.tensor(label), and no structure."""
    takes = {target for _, target, kind in dag.edges if kind != PRODUCES}
    forms: dict[Hashable, set[Hashable]] = defaultdict(set)
    for source, target, kind in dag.edges:
        if kind == PRODUCES:
            made = dag.nodes[target]
            forms[places[source]].add((tuple(made.shape), made.dtype))
    taking = {places[node_id] for node_id in takes}
    return {place for place, found in forms.items() if len(found) == 1 and place not in taking}


def _exact_classes(dag: ExecutionDAG, labels: Mapping[int, Hashable]) -> dict[int, int]:
    into: dict[int, list[tuple[str, int]]] = {node_id: [] for node_id in dag.nodes}
    out: dict[int, list[tuple[str, int]]] = {node_id: [] for node_id in dag.nodes}
    for source, target, kind in dag.edges:
        into[target].append((kind, source))
        out[source].append((kind, target))
    looks = _refined(labels, into, out, dag.topological_order() if dag.edges else list(dag.nodes))
    certificates: dict[int, list[Hashable]] = {node_id: [] for node_id in dag.nodes}
    _certify(list(dag.nodes), looks, into, out, certificates)
    names: dict[Hashable, int] = {}
    return {
        node_id: names.setdefault((looks[node_id], tuple(certificates[node_id])), len(names))
        for node_id in dag.nodes
    }


def _refined(
    labels: Mapping[int, Hashable],
    into: Mapping[int, list[tuple[str, int]]],
    out: Mapping[int, list[tuple[str, int]]],
    order: list[int],
) -> dict[int, int]:
    """Colour refinement: first down the graph and up again, which is nearly all of it."""
    looks = _numbered({node_id: labels[node_id] for node_id in labels})
    rest = (
        [node_id for node_id in labels if node_id not in set(order)]
        if len(order) < len(labels)
        else []
    )
    count = len(set(looks.values()))
    for _ in range(_ROUNDS):
        looks = _swept(looks, into, [*order, *rest], ordered=True)
        looks = _swept(looks, out, [*reversed(order), *rest], ordered=False)
        now = len(set(looks.values()))
        if now == count:
            break
        count = now
    return looks


def _swept(
    looks: dict[int, int],
    neighbours: Mapping[int, list[tuple[str, int]]],
    order: Iterable[int],
    *,
    ordered: bool,
) -> dict[int, int]:
    names: dict[Hashable, int] = {}
    new: dict[int, int] = {}
    for node_id in order:
        around = neighbours[node_id]
        if len(around) == 1:
            kind, other = around[0]
            near: Hashable = (kind, new.get(other, -1))
        elif ordered and len(around) <= 8:
            first: dict[int, int] = {}  # which inputs are the same one: f(x, x) is not f(x, y)
            near = tuple(
                (kind, new.get(other, -1), first.setdefault(other, len(first)))
                for kind, other in around
            )
        else:
            near = tuple(
                sorted(Counter((kind, new.get(other, -1)) for kind, other in around).items())
            )
        key = (looks[node_id], near)
        new[node_id] = names.setdefault(key, len(names))
    return new


def _numbered(labels: Mapping[int, Hashable]) -> dict[int, int]:
    names: dict[Hashable, int] = {}
    return {node_id: names.setdefault(label, len(names)) for node_id, label in labels.items()}


def _certify(
    nodes: list[int],
    looks: Mapping[int, int],
    into: Mapping[int, list[tuple[str, int]]],
    out: Mapping[int, list[tuple[str, int]]],
    certificates: dict[int, list[Hashable]],
) -> None:
    """Give every node the certificates of the pieces that it is in, from the largest to its own."""
    waiting = [nodes]
    while waiting:
        piece = waiting.pop()
        counts = Counter(looks[node_id] for node_id in piece)
        rest = [node_id for node_id in piece if counts[looks[node_id]] > 1]
        if not rest:
            continue
        parts = _connected(rest, into, out)
        if len(parts) == 1 and len(rest) == len(piece):
            certificate = _wiring(piece, looks, into)
            for node_id in piece:
                certificates[node_id].append(certificate)
            continue
        by_look: dict[Hashable, list[list[int]]] = defaultdict(list)
        for part in parts:
            by_look[tuple(sorted(Counter(looks[n] for n in part).items()))].append(part)
        for alike in by_look.values():
            trivial = all(len(part) == len({looks[n] for n in part}) for part in alike)
            if not trivial:  # a part whose nodes all look different is known by its looks
                waiting.extend(alike)


def _connected(
    nodes: list[int],
    into: Mapping[int, list[tuple[str, int]]],
    out: Mapping[int, list[tuple[str, int]]],
) -> list[list[int]]:
    left = dict.fromkeys(nodes)
    parts: list[list[int]] = []
    while left:
        start = next(iter(left))
        del left[start]
        part, waiting = [start], [start]
        while waiting:
            node_id = waiting.pop()
            for _, other in (*into[node_id], *out[node_id]):
                if other in left:
                    del left[other]
                    part.append(other)
                    waiting.append(other)
        parts.append(sorted(part))
    return parts


def _wiring(
    piece: list[int], looks: Mapping[int, int], into: Mapping[int, list[tuple[str, int]]]
) -> Hashable:
    """The piece written down in the order in which it ran: equal texts are equal wirings."""
    place = {node_id: number for number, node_id in enumerate(sorted(piece))}
    return tuple(
        (
            looks[node_id],
            tuple((kind, place[other]) for kind, other in into[node_id] if other in place),
        )
        for node_id in sorted(piece)
    )


def _warm(times: list[float], count: int) -> dict[str, float]:
    """All calls as if they took the median of the warm ones; the first, which loads and compiles,
    is apart."""
    first, *rest = times
    return {"warm": median(rest or [first]) * count, "first": first}


def _merged(nodes: list[DAGNode]) -> DAGNode:
    first = nodes[0]
    times = [node.performance.get("execution_time", 0.0) for node in nodes]
    count = sum(node.count for node in nodes)
    keys = dict.fromkeys(key for node in nodes for key in node.performance)
    performance = {key: sum(node.performance.get(key, 0.0) for node in nodes) for key in keys}
    if first.node_type == FUNCTION:
        mean = sum(times) / len(times)
        performance["mean"] = mean
        performance["variance"] = sum((time - mean) ** 2 for time in times) / len(times)
        performance |= _warm([node.seconds for node in nodes], count)
    else:
        performance["bytes"] = float(
            sum(node.performance.get("bytes", node.nbytes) for node in nodes)
        )
    performance["count"] = float(count)
    members = tuple(i for node in nodes for i in (node.members or (node.node_id,)))
    same_rank = all(len(node.shape) == len(first.shape) for node in nodes)
    shape = first.shape if same_rank else ()  # of one of them, where they differ
    alike = all(n.arguments == first.arguments for n in nodes)
    arguments = first.arguments if alike else f"{first.arguments} …"
    return replace(
        first, performance=performance, members=members, shape=shape, arguments=arguments
    )


def _merged_edges(
    edges: Iterable[Edge], classes: Mapping[int, int], representative: Mapping[int, int]
) -> list[Edge]:
    found: dict[Edge, None] = {}
    for source, target, kind in edges:
        ends = representative[classes[source]], representative[classes[target]]
        found[(*ends, kind)] = None
    return list(found)
