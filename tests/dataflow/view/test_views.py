"""SVG, pictures of a report, and the time line."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.dataflow.placement.test_manager import pipeline
from torchstone.core.errors import UsageError
from torchstone.dataflow import DAGBuilder, GraphCoarsening, GraphvizDataflowVisualizer
from torchstone.dataflow.view.chrome import chrome_trace
from torchstone.dataflow.view.graphviz import draw_dag
from torchstone.dataflow.view.pictures import graph_picture, operator_links


def test_svg_with_layers_and_styles(tmp_path: Path) -> None:
    dag = pipeline(images=2)
    path = tmp_path / "flow.svg"
    drawer = GraphvizDataflowVisualizer()
    assert drawer.generate_dataflow_svg(dag.nodes.values(), dag.edges, str(path), "images <1>")
    text = path.read_text("utf-8")
    ElementTree.fromstring(text.encode())
    assert "cv2.resize" in text
    assert "images &lt;1&gt;" in text
    assert "#cfe2f3" in text  # a function
    assert "#d9ead3" in text  # a variable
    assert "uses" in text
    assert "produces" in text
    layers = drawer.organize_nodes_by_layer(list(dag.nodes.values()), dag.edges)
    assert [node.name for node in layers[0]] == ["load", "load"]
    assert layers[max(layers)][0].name == "numpy.stack"


def test_names_that_would_act_are_text(tmp_path: Path) -> None:
    builder = DAGBuilder()
    builder.add_function_node('</svg><script>alert(1)</script>"\n\\')
    path = tmp_path / "x.svg"
    draw_dag(builder.dag, str(path), '"]; evil [label="x')
    text = path.read_text("utf-8")
    ElementTree.fromstring(text.encode())
    assert "<script>" not in text


def test_large_graphs_are_folded_or_refused(tmp_path: Path) -> None:
    dag = pipeline(images=300)
    assert draw_dag(dag, str(tmp_path / "folded.svg"))
    assert (tmp_path / "folded.svg").stat().st_size < 100_000
    with pytest.raises(UsageError, match="nodes"):
        GraphvizDataflowVisualizer().generate_dataflow_svg(
            dag.nodes.values(), dag.edges, str(tmp_path / "no.svg"), ""
        )
    assert not (tmp_path / "no.svg").exists()


def test_operators_and_what_they_are_folded_into() -> None:
    dag = pipeline(images=3)
    folded = GraphCoarsening().coarsen(dag)
    picture = graph_picture(dag, folded, dict.fromkeys(folded.nodes, "cuda:0"))
    assert len(picture.vertices) == 13
    assert len({vertex.fold for vertex in picture.vertices}) == 5
    assert len(picture.links) == len(operator_links(dag)) == 12
    assert picture.vertices[0].devices == ("cpu", "cuda:0")


def test_time_line() -> None:
    dag = pipeline(images=1)
    events = chrome_trace(dag)["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    assert len(calls) == 5
    assert calls[1]["name"] == "cv2.resize"
    assert calls[1]["dur"] == pytest.approx(1000.0)
