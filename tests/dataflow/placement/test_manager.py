"""From a graph to a plan that survives JSON."""

from __future__ import annotations

import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from torchstone.core.errors import InputError, UsageError
from torchstone.dataflow import (
    DAGBuilder,
    ExecutionDAG,
    GraphCoarsening,
    IterativeOptimizer,
    KWayPartitioner,
)
from torchstone.dataflow.answer import plan_answer
from torchstone.dataflow.device.kernel_count import UNKNOWN, KernelCount
from torchstone.dataflow.device.profile import (
    DeviceProfile,
    Interval,
    Work,
    assumed_profile,
    load_profile,
)
from torchstone.dataflow.placement.catalogued import look_up
from torchstone.dataflow.placement.manager import OptimizerManager
from torchstone.dataflow.placement.partitioner import Partition
from torchstone.dataflow.plan import plan_from_data

FAST = DeviceProfile("cuda:0", 10e9, 10e-6, 5e-6, speedup=20.0)
SUPPORTED = {"StandardOp": ["cv2.resize", "cv2.cvtColor"]}


def pipeline(images: int = 4, seconds: float = 1e-3, size: int = 150_000) -> ExecutionDAG:
    """load → resize → colour → divide for every image, then stack."""
    builder = DAGBuilder()
    ends = []
    for _ in range(images):
        before = None
        for name, kind in (("load", "call"), ("cv2.resize", "call"), ("cv2.cvtColor", "call"), ("numpy.divide", "expression")):  # fmt: skip
            op = builder.add_function_node(name, f"prepare/{name}")
            node = builder.dag.nodes[op]
            node.kind, node.role, node.line = kind, "operator", len(name)
            node.performance = {"execution_time": seconds, "bytes_out": float(size)}
            if before is not None:
                builder.add_edge(before, op, "uses")
            before = builder.add_variable_node(f"{name}_return")
            builder.dag.nodes[before].nbytes = size
            builder.add_edge(op, before, "produces")
        ends.append(before)
    stack = builder.add_function_node("numpy.stack", "numpy.stack")
    builder.dag.nodes[stack].performance = {"execution_time": seconds}
    for end in ends:
        builder.add_edge(end, stack, "uses")
    return builder.dag


def plan_for(dag: ExecutionDAG, **options: Any) -> dict[str, Any]:
    manager = OptimizerManager(k=2)
    result = manager.optimize(dag)
    options = {"gpu_count": 1, "profile": FAST, "supported": SUPPORTED, **options}
    return manager.get_best_plan(result["coarsened_dag"], **options)


def test_the_seeds_keys_and_the_stages_on_disk(tmp_path: Path) -> None:
    result = OptimizerManager(k=2, coarsen_max_depth=5, max_iterations=100).optimize(
        pipeline(), export_dir=str(tmp_path)
    )
    stats = result["statistics"]
    assert set(stats) == {"coarsening", "partitioning", "iteration"}
    assert 0 < stats["partitioning"]["load_balance"] <= 1
    assert stats["coarsening"]["original_nodes"] == 33
    assert stats["coarsening"]["coarsened_nodes"] == 9
    for part in result["optimized_partitions"]:
        assert part.center in part.nodes
        assert part.total_compute == pytest.approx(
            sum(result["coarsened_dag"].nodes[n].seconds for n in part.nodes)
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "coarsened_dag.json", "initial_partitions.json", "optimized_partitions.json",
        "statistics.json",
    ]  # fmt: skip
    json.dumps(stats)


def test_the_plan_moves_what_pays_and_says_why_the_rest_stays() -> None:
    data = json.loads(json.dumps(plan_for(pipeline())))
    plan = plan_from_data(data)
    assert data["context_device_map"] == {
        "prepare/cv2.resize": "cuda:0", "prepare/cv2.cvtColor": "cuda:0",
    }  # fmt: skip
    assert plan.device_for(["<module>", "main", "prepare"], "cv2.resize") == "cuda:0"
    assert plan.device_for(["prepare"], "numpy.divide") == "cpu"
    by_name = {item.function: item for item in plan.operators}
    assert by_name["cv2.resize"].keep_on_device
    assert not by_name["cv2.cvtColor"].keep_on_device
    assert "no GPU implementation available" in by_name["load"].reason.en
    assert "written with an operator" in by_name["numpy.divide"].reason.en
    times = {item.name: item.seconds for item in plan.estimates}
    assert times["plan"] <= min(times["all_cpu"], times["all_device"])
    assert plan.bound_seconds == times["plan"]


def test_a_plan_that_does_not_pay_moves_nothing() -> None:
    data = plan_for(pipeline(seconds=20e-6, size=4_000_000))
    assert data["context_device_map"] == {}
    assert set(data["node_device_map"].values()) == {"cpu"}
    assert plan_for(pipeline(), gpu_count=0)["context_device_map"] == {}
    assert plan_for(pipeline(), supported={})["context_device_map"] == {}


def test_batches_make_moving_cheaper_and_workers_dearer() -> None:
    dag = pipeline(images=32, seconds=60e-6, size=1000)
    device = assumed_profile("cuda:0")
    alone, together = (plan_for(dag, batch=size, profile=device) for size in (1, 32))
    assert not alone["context_device_map"]
    assert together["context_device_map"]
    shared = plan_from_data(plan_for(dag, batch=2, profile=device, workers=8))
    assert not shared.context_device_map
    assert shared.estimates[1].seconds == pytest.approx((32 * 4 + 1) * 60e-6 / 8)


def test_a_model_on_the_device_takes_the_results_there() -> None:
    """What it costs to bring results over is paid anyway: the last operator moves."""
    builder = DAGBuilder()
    before = None
    for name in ("load", "cv2.resize"):
        op = builder.add_function_node(name)
        builder.dag.nodes[op].kind = "call"
        builder.dag.nodes[op].performance = {"execution_time": 250e-6}
        if before is not None:
            builder.add_edge(before, op, "uses")
        before = builder.add_variable_node(f"{name}_return")
        builder.dag.nodes[before].nbytes = 1_500_000
        builder.add_edge(op, before, "produces")
    here, there = (
        plan_from_data(plan_for(builder.dag, consumer=where)) for where in ("cpu", "device")
    )
    assert not here.context_device_map
    assert there.context_device_map == {"cv2.resize": "cuda:0"}
    seconds = {item.name: item for item in there.estimates}
    assert seconds["plan"].transfers == seconds["all_cpu"].transfers == 1


def test_time_outside_of_operators_stays_and_is_part_of_the_gain() -> None:
    alone, within = (plan_from_data(plan_for(pipeline(), other_seconds=s)) for s in (0.0, 2.0))
    assert within.context_device_map == alone.context_device_map
    for one, other in zip(alone.estimates, within.estimates, strict=True):
        assert other.seconds == pytest.approx(one.seconds + 2.0)
    answers = [plan_answer(plan, "job.py", "") for plan in (alone, within)]
    assert [answer.state for answer in answers] == ["good", "plain"]
    assert answers[0].headline.en.startswith("Move cv2.resize, cv2.cvtColor to cuda:0: 17 ms → ")
    assert answers[1].headline.en.startswith("Moving hardly pays: 2.017 s → ")
    assert "2 s of it outside of operators" in str(answers[1].tiles[1].note)
    shared = plan_from_data(plan_for(pipeline(), other_seconds=2.0, workers=4))
    assert shared.other_seconds == 0.5


def test_times_are_medians_of_warm_calls() -> None:
    dag = pipeline(images=5)
    resizes = [node for node in dag.nodes.values() if node.name == "cv2.resize"]
    for node, seconds in zip(resizes, (5.0, 1e-3, 2e-3, 2e-3, 9e-3), strict=True):
        node.performance["execution_time"] = seconds
    folded = GraphCoarsening().coarsen(dag)
    (node,) = [node for node in folded.nodes.values() if node.name == "cv2.resize"]
    assert node.performance["warm"] == pytest.approx(5 * 2e-3)
    assert node.performance["first"] == 5.0
    plan = plan_from_data(plan_for(dag))
    (op,) = [op for op in plan.operators if op.function == "cv2.resize"]
    assert op.cpu_seconds == pytest.approx(5 * 2e-3)


def test_parts_go_to_the_devices_in_their_order() -> None:
    dag = pipeline(images=3)
    manager = OptimizerManager(k=4)
    result = manager.optimize(dag)
    parts, folded = result["optimized_partitions"], result["coarsened_dag"]
    options = {"profile": FAST, "supported": {"StandardOp": ["load", "cv2.resize", "cv2.cvtColor", "numpy.stack"]}}  # fmt: skip

    def devices(given, count):
        return manager.get_migration_plan(given, folded, count, **options)["context_device_map"]

    four = devices(parts, 4)
    assert set(four.values()) == {f"cuda:{number}" for number in range(4)}
    assert devices(list(reversed(parts)), 4) != four
    assert devices([], 4) == {}
    assert set(devices(parts, 1).values()) == {"cuda:0"}
    plan = plan_from_data(manager.get_migration_plan(parts, folded, 4, **options))
    assert plan.partition_device_map == {str(part.id): f"cuda:{place}" for place, part in enumerate(parts)}  # fmt: skip
    seconds = {item.name: item for item in plan.estimates}
    assert seconds["optimum"].seconds <= seconds["plan"].seconds
    stays = manager.get_migration_plan(parts, folded, 4, **{**options, "supported": SUPPORTED})
    named = stays["partition_device_map"]  # a part of which nothing can move takes no device
    assert "cpu" in named.values()
    assert set(named.values()) - {"cpu"} == {
        f"cuda:{number}" for number in range(4 - list(named.values()).count("cpu"))
    }
    one = plan_from_data(manager.get_migration_plan(parts, folded, 1, **options)).estimates[0]
    assert seconds["plan"].transfer_bytes > one.transfer_bytes  # from device to device


def test_figures_that_the_guide_names() -> None:
    dag = pipeline(images=3)
    partitioner = KWayPartitioner(2)
    parts = partitioner.partition(dag)
    assert partitioner.node_weights.keys() == dag.nodes.keys()
    assert partitioner.max_weight == max(partitioner.node_weights.values())
    assert partitioner.diameter == 16  # from one load to another, over the stack
    for part in parts:
        assert partitioner.center_distances[part.center][part.center] == 0
    coarsening = GraphCoarsening()
    coarsening.coarsen(dag)
    assert len(coarsening.anchors["cv2.resize"]) == 3
    assert "numpy.stack" not in coarsening.anchors


def test_one_context_on_both_devices_is_told_apart_by_its_line() -> None:
    builder = DAGBuilder()
    for line, seconds in ((3, 1e-6), (9, 1e-2)):
        node = builder.dag.nodes[builder.add_function_node("cv2.resize", "f/cv2.resize")]
        node.kind, node.line, node.performance = "call", line, {"execution_time": seconds}
        made = builder.add_variable_node("image")
        builder.dag.nodes[made].nbytes = 100_000
        builder.add_edge(node.node_id, made, "produces")
    plan = plan_from_data(plan_for(builder.dag))
    assert plan.context_device_map == {"f/cv2.resize@3": "cpu", "f/cv2.resize@9": "cuda:0"}
    assert plan.device_for(["f"], "cv2.resize", 9) == "cuda:0"
    assert plan.device_for(["f"], "cv2.resize", 3) == "cpu"


def test_several_devices_share_independent_chains() -> None:
    builder = DAGBuilder()
    for number in range(2):
        node = builder.dag.nodes[builder.add_function_node("cv2.resize", f"f{number}/cv2.resize")]
        node.kind, node.performance = "call", {"execution_time": 1e-2}
    plan = plan_from_data(plan_for(builder.dag, gpu_count=2))
    assert sorted(plan.context_device_map.values()) == ["cuda:0", "cuda:1"]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 50])
def test_parts_are_never_in_a_circle(k: int) -> None:
    dag = pipeline(images=7)
    parts = IterativeOptimizer(200).optimize(KWayPartitioner(k).partition(dag), dag)
    home = {node: part.id for part in parts for node in part.nodes}
    assert sorted(home) == sorted(dag.nodes)
    assert len(parts) == min(k, len(dag.nodes))
    assert all(part.nodes for part in parts)
    assert all(home[source] <= home[target] for source, target, _ in dag.edges)


def test_moves_never_make_the_objective_worse() -> None:
    dag = pipeline(images=9)
    for seed, node in enumerate(dag.nodes.values()):
        node.performance["execution_time"] = (seed * 7919 % 13) * 1e-4
    order = dag.topological_order()
    cut = len(order) // 5
    lopsided = [Partition(0, order[0], order[:cut]), Partition(1, order[cut], order[cut:])]
    optimizer = IterativeOptimizer(500, no_improvement_threshold=50)
    optimizer.optimize(lopsided, dag)
    stats = optimizer.stats
    assert stats["moves"] > 0
    assert stats["best_objective"] < stats["initial_objective"]
    assert set(optimizer.cp_lengths) == {0, 1}
    assert max(optimizer.cp_lengths.values()) > 0
    assert len(lopsided[0].nodes) == cut


def test_logging_as_in_the_guide(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="optimizer"):
        OptimizerManager(k=2).optimize(pipeline())
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert said == ["开始图粗化聚类...", "粗化完成: 33 -> 9 节点", "开始K-way划分 (k=2)..."]
    details = [record.getMessage() for record in caplog.records if record.levelno < logging.INFO]
    assert [text.partition(":")[0] for text in details] == ["锚点", "迭代优化", "分区 0", "分区 1"]


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        KWayPartitioner(0)
    with pytest.raises(UsageError):
        OptimizerManager().optimize("graph")  # type: ignore[arg-type]
    for wrong in (
        {"gpu_count": -1},
        {"batch": 0},
        {"goal": "speed"},
        {"workers": -1},
        {"other_seconds": float("inf")},
    ):
        with pytest.raises(UsageError):
            plan_for(pipeline(), **wrong)
    (tmp_path / "p.json").write_text('{"name": "cuda:0", "speedups": {"cv2.resize": -2.0}}')
    with pytest.raises(InputError, match="rate of 0 or less"):
        load_profile(tmp_path / "p.json")
    with pytest.raises(InputError):
        load_profile(tmp_path / "none.json")


def test_profiles(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"name": "npu:0", "speedups": {"cv2.resize": 8.0}}')
    read = load_profile(tmp_path / "p.json")
    assert read.time_of("cv2.resize", Work(8.0, 0, 0), UNKNOWN) == Interval(1.0, 1.0)
    assert str(tmp_path) in read.how.en
    made = assumed_profile("cuda:0")
    times = [made.time_of("f", Work(1.0, 1, touched), UNKNOWN) for touched in (1e6, 1e7, 1e8)]
    assert all(a.high < b.high and a.low < a.high for a, b in pairwise(times))
    few, many = (made.time_of("f", Work(1.0, 10, 0), KernelCount(n, n, n)) for n in (1, 44))
    assert many.high == pytest.approx(44 * few.high) == pytest.approx(44 * 10 * 8e-6)
    light, heavy = (
        made.time_of("f", Work(1.0, 0, 1e6, 1e6), KernelCount(0, 0, 0, operations=n))
        for n in (1, 1e4)
    )
    assert heavy.high == pytest.approx(1e10 * 8 / (made.operations_per_second * 0.3))
    assert light.high == pytest.approx(1e6 / (made.memory_bytes_per_second * 0.3))
    assert assumed_profile("cpu").transfer_seconds(1e9, 5) == 0.0


def test_the_element_of_an_erosion_is_data_like_any_other() -> None:
    builder = DAGBuilder()
    call = builder.dag.nodes[builder.add_function_node("cv2.erode", "cv2.erode")]
    call.arguments = "_, _"
    data = []
    for shape in ((64, 64, 3), (3, 3)):
        node = builder.dag.nodes[builder.add_variable_node("array")]
        node.kind, node.shape, node.dtype = "ndarray", shape, "uint8"
        data.append(node)
    found = look_up(call, data)
    assert not found.stays.en
    assert found.case == "any"
