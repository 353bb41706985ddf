"""Worker processes: what they do belongs to the graph, and leads to what the program gets back."""

from __future__ import annotations

import json
import subprocess
import sys
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
from benchmarks.flow.accuracy import operator_edges
from torch.utils.data import DataLoader

from tests.dataflow.tracing import pipelines, pool_program
from torchstone.dataflow import EnhancedTracer
from torchstone.dataflow.graph.export import load_graph

POOL_PROGRAM = Path(pool_program.__file__)


@pytest.mark.parametrize("context", ["", "fork", "spawn"])
def test_batches_lead_back_to_the_samples(context: str) -> None:
    # a spawned worker loads torch
    count = 1 if context == "spawn" else 2
    workers = {"num_workers": count, "multiprocessing_context": context} if context else {}
    loader = DataLoader(pipelines.Images(4), batch_size=2, **workers)
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        for batch in loader:
            total = batch.sum()
    assert float(total) == (2 + 3) * 8 * 8 * 3
    dag = tracer.dag_builder.dag
    edges = operator_edges(dag)
    for number in ("", "#2", "#3", "#4"):
        assert f"full{number}>resize{number}" in edges or context
        assert any(edge.startswith(f"cvtColor{number}>default_collate") for edge in edges)
    # which worker is first is up to the machine
    makers = {edge.partition(">")[0] for edge in edges if edge.endswith((">sum", ">sum#2"))}
    assert makers >= {"default_collate", "default_collate#2"}
    if context:
        assert {node.thread for node in dag.functions() if node.name == "cv2.resize"} >= {
            node.thread for node in dag.functions() if "worker" in node.thread
        }
    contexts = {node.context for node in dag.operators() if node.name == "cv2.resize"}
    assert contexts == {"Images.__getitem__/Images.prepare/cv2.resize"}
    assert dag.is_acyclic()


@pytest.mark.parametrize("kind", ["fork", "spawn", "executor"])
def test_what_a_pool_is_given_and_gives_back_stays_the_same_data(kind: str) -> None:
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        stacked = pool_program.prepare(kind)
    assert stacked.shape == (3, 4, 4)
    edges = operator_edges(tracer.dag_builder.dag)
    assert edges == {
        "full>add", "full#2>add#2", "full#3>add#3", "add>stack", "add#2>stack", "add#3>stack",
    }  # fmt: skip
    assert not tracer.notes


def test_processes_are_started_and_pickled_as_before_once_the_trace_has_ended() -> None:
    start, names = BaseProcess.start, set(vars(ForkingPickler))
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    assert BaseProcess.start is not start
    tracer.stop_tracing()
    assert BaseProcess.start is start
    assert set(vars(ForkingPickler)) == names


def test_a_loader_that_the_script_itself_imports_is_followed(tmp_path: Path) -> None:
    """torch is not loaded when the trace begins: its files that pass data on are rewritten on the way."""
    script = tmp_path / "load.py"
    script.write_text(
        "import numpy as np\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Rows(Dataset):\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, index): return np.full(3, float(index)) * 2\n"
        "for batch in DataLoader(Rows(), batch_size=2):\n"
        "    total = batch.sum()\n"
    )
    command = [
        sys.executable,
        "-m",
        "torchstone",
        "flow",
        "trace",
        str(script),
        "--save",
        "trace.json",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    dag, data = load_graph(tmp_path / "trace.json")
    assert "default_collate>sum" in operator_edges(dag)
    assert json.loads((tmp_path / "trace.json").read_text())["notes"] == data["notes"] == []
