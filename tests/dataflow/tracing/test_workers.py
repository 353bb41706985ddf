"""DataLoader: what workers do belongs to the graph, and leads to the batch."""

from __future__ import annotations

import pytest
from benchmarks.flow.accuracy import operator_edges
from torch.utils.data import DataLoader

from tests.dataflow.tracing import pipelines
from torchstone.dataflow import EnhancedTracer


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_lead_back_to_the_samples(workers: int) -> None:
    loader = DataLoader(pipelines.Images(4), batch_size=2, num_workers=workers)
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        for batch in loader:
            total = batch.sum()
    assert float(total) == (2 + 3) * 8 * 8 * 3
    dag = tracer.dag_builder.dag
    edges = operator_edges(dag)
    for number in ("", "#2", "#3", "#4"):
        assert f"full{number}>resize{number}" in edges or workers
        assert any(edge.startswith(f"cvtColor{number}>default_collate") for edge in edges)
    handed = "get" if workers else "sum"
    ends = (f">{handed}", f">{handed}#2")  # which worker is first is up to the machine
    makers = {edge.partition(">")[0] for edge in edges if edge.endswith(ends)}
    assert makers >= {"default_collate", "default_collate#2"}
    if workers:
        assert {"get>sum", "get#2>sum#2"} <= edges
        assert {node.thread for node in dag.functions() if node.name == "cv2.resize"} >= {
            node.thread for node in dag.functions() if "worker" in node.thread
        }
    contexts = {node.context for node in dag.operators() if node.name == "cv2.resize"}
    assert contexts == {"Images.__getitem__/Images.prepare/cv2.resize"}
    assert dag.is_acyclic()
