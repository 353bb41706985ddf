"""A graph as plain data, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.core.files import keep_out_of_git, read_regular
from torchstone.core.text import Text
from torchstone.dataflow.graph.dag import DAGNode, ExecutionDAG

SCHEMA = "torchstone/flow-graph/1"
_LARGEST = 2 * 2**30  # half a million events take 400 MiB


def keep_out_of_version_control(path: Path) -> None:
    """What is kept beside a project, in its folder `.torchstone`, stays out of its history."""
    for parent in path.parents:
        if parent.name == ".torchstone":
            parent.mkdir(parents=True, exist_ok=True)
            keep_out_of_git(parent)


def graph_data(
    dag: ExecutionDAG,
    notes: Sequence[Text] = (),
    program: str = "",
    program_hash: str = "",
    wall_seconds: float = 0.0,
) -> dict[str, Any]:
    """Everything that a graph holds, for `json.dump`."""
    return {
        "schema": SCHEMA,
        "program": program,
        "program_hash": program_hash,
        "wall_seconds": wall_seconds,
        "nodes": [_node_data(node) for node in dag.nodes.values()],
        "edges": [
            {"source": source, "target": target, "type": kind} for source, target, kind in dag.edges
        ],
        "notes": [to_data(note) for note in notes],
    }


def _node_data(node: DAGNode) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": node.node_id,
        "name": node.name,
        "type": node.node_type,
        "performance": dict(node.performance),
    }
    for item in fields(node):
        value = getattr(node, item.name)
        if item.name not in _SHOWN and value != item.default and value != ():
            data[item.name] = list(value) if isinstance(value, tuple) else value
    return data


@dataclass(frozen=True, slots=True)
class _Edge:
    source: int
    target: int
    type: str


_SHOWN = ("node_id", "name", "node_type", "performance")


def graph_from_data(data: object, where: str = "graph") -> ExecutionDAG:
    """The graph that `graph_data` wrote, checked."""
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        given = data.get("schema") if isinstance(data, Mapping) else type(data).__name__
        raise _wrong(where, f"schema {given!r}", Text(f"schema {SCHEMA!r}", f"schema {SCHEMA!r}"))
    dag = ExecutionDAG()
    for place, item in enumerate(_listed(data, "nodes", where)):
        node = _node(item, f"{where}: nodes[{place}]")
        dag.nodes[node.node_id] = node
    for place, item in enumerate(_listed(data, "edges", where)):
        edge = (
            from_data(_Edge, dict(item), f"{where}: edges[{place}]")
            if isinstance(item, Mapping)
            else None
        )
        if edge is None or edge.source not in dag.nodes or edge.target not in dag.nodes:
            expected = Text("two nodes of the graph", "图中的两个节点")
            raise _wrong(f"{where}: edges[{place}]", repr(item)[:60], expected)
        dag.edges.append((edge.source, edge.target, edge.type))
    return dag


def load_graph(path: Path | str) -> tuple[ExecutionDAG, Mapping[str, Any]]:
    """The graph in a file, and everything else that stands there."""
    try:
        data = json.loads(read_regular(path, _LARGEST))
    except OSError as error:
        given = error.strerror or type(error).__name__
        raise _wrong(str(path), given, Text("a readable trace", "可读取的追踪文件")) from None
    except (ValueError, RecursionError) as error:
        raise _wrong(str(path), f"no JSON ({error})", Text("a trace", "追踪文件")) from None
    return graph_from_data(data, str(path)), data


def _listed(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise _wrong(f"{where}: {key}", type(value).__name__, Text("a list", "列表"))
    return value


def _node(item: object, where: str) -> DAGNode:
    if not isinstance(item, Mapping) or not {"id", "name", "type"} <= set(item):
        raise _wrong(where, repr(item)[:60], Text("id, name and type", "id、name 与 type"))
    renamed = {"node_id": item["id"], "node_type": item["type"]}
    rest = {key: value for key, value in item.items() if key not in ("id", "type")}
    return from_data(DAGNode, {**renamed, **rest}, where)


def _wrong(where: str, given: str, expected: Text) -> InputError:
    todo = Text(
        "make it anew with `torchstone flow trace`", "请用 `torchstone flow trace` 重新生成"
    )
    return InputError(where, given, expected, todo)
