"""Graphs are built by hand, written, and read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchstone.core.errors import InputError, UsageError
from torchstone.dataflow import DAGBuilder
from torchstone.dataflow.graph.export import graph_data, graph_from_data, load_graph


def built() -> DAGBuilder:
    builder = DAGBuilder()
    image = builder.add_variable_node("image")
    resize = builder.add_function_node(name="cv2.resize", context="f/cv2.resize")
    small = builder.add_variable_node("image")
    builder.add_edge(image, resize, "uses")
    builder.add_edge(resize, small, "produces")
    return builder


def test_versions_and_types() -> None:
    dag = built().dag
    assert [(n.name, n.version, n.node_type) for n in dag.nodes.values()] == [
        ("image", 1, "variable"), ("cv2.resize", 0, "function_call"), ("image", 2, "variable"),
    ]  # fmt: skip
    assert dag.edges == [(0, 1, "uses"), (1, 2, "produces")]
    assert dag.topological_order() == [0, 1, 2]


def test_an_edge_is_kept_once_and_needs_its_ends() -> None:
    builder = built()
    builder.add_edge(0, 1, "uses")
    assert len(builder.dag.edges) == 2
    with pytest.raises(UsageError, match="node 9"):
        builder.add_edge(0, 9, "uses")


def test_a_cycle_is_known() -> None:
    builder = built()
    builder.add_edge(2, 1, "uses")
    assert not builder.dag.is_acyclic()


def test_written_and_read(tmp_path: Path) -> None:
    dag = built().dag
    dag.nodes[1].performance = {"execution_time": 0.5}
    dag.nodes[2].shape = (2, 3)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph_data(dag, program="p.py")))
    read, data = load_graph(path)
    assert read == dag
    assert data["program"] == "p.py"


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other/1"},
        {"nodes": 3},
        {"nodes": [{"id": 0}]},
        {"nodes": [{"id": 0, "name": "x", "type": "variable", "shape": "wide"}]},
        {"edges": [{"source": 0, "target": 77, "type": "uses"}]},
        {"edges": ["0-1"]},
    ],
)
def test_a_broken_graph_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        graph_from_data({**graph_data(built().dag), **change})


def test_a_file_that_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 5000)
    for name in ("x.json", "missing.json", "."):
        with pytest.raises(InputError):
            load_graph(tmp_path / name)
