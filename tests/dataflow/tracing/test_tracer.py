"""What the tracer sees, and that it leaves everything as it found it."""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.dataflow.tracing import pipelines
from torchstone.core.errors import UsageError
from torchstone.dataflow import EnhancedTracer, ExecutionDAG

CODES = {name: f.__code__ for name, f in vars(pipelines).items() if hasattr(f, "__code__")}


@pytest.fixture(autouse=True)
def left_as_found():
    """After every test each function has its own code, and nothing is patched."""
    finders, trace = list(sys.meta_path), sys.gettrace()
    yield
    for name, code in CODES.items():
        assert getattr(pipelines, name).__code__ is code, name
    assert sys.meta_path == finders
    assert sys.gettrace() is trace


def names(dag: ExecutionDAG) -> list[str]:
    return [node.name for node in sorted(dag.operators(), key=lambda node: node.start)]


def test_calls_operators_variables_and_edges() -> None:
    tracer = EnhancedTracer(max_depth=8, track_memory=True)
    with tracer.tracing_context():
        pipelines.image_pipeline([pipelines.IMAGE, pipelines.IMAGE[::-1]])
    dag = tracer.dag_builder.dag
    assert names(dag)[-6:] == ["cv2.resize", "cv2.cvtColor", "numpy.divide"] * 2
    region = next(node for node in dag.functions() if node.name == "image_pipeline")
    assert region.role == "region"
    resize = next(node for node in dag.operators() if node.name == "cv2.resize")
    assert resize.context == "image_pipeline/cv2.resize"
    assert resize.parent == region.node_id
    assert resize.performance["execution_time"] > 0
    assert resize.performance["bytes_out"] == 24 * 24 * 3
    assert resize.arguments == "_, (24, 24)"
    versions = [node.version for node in dag.nodes.values() if node.name == "resized"]
    assert versions == [1, 2]
    kinds = {dag.nodes[s].node_type + kind + dag.nodes[t].node_type for s, t, kind in dag.edges}
    assert kinds == {"variableusesfunction_call", "function_callproducesvariable"}
    assert dag.is_acyclic()
    assert tracer.memory_profiler is not None
    assert tracer.memory_profiler.peak_bytes > 0
    assert tracer.performance_monitor.summary()["cv2.resize"].calls == 2
    assert json.loads(json.dumps(tracer.export_dataflow_graph()))["nodes"]


def test_statements_of_the_block_itself_in_a_function() -> None:
    tracer = EnhancedTracer(track_memory=False)
    image = pipelines.IMAGE
    with tracer.tracing_context() as same:
        small = cv2.resize(image, (8, 8))
        small -= 1
        total = [float(small[row].mean()) for row in range(2)]
    assert same is tracer
    assert small.shape == (8, 8, 3)
    assert len(total) == 2
    found = names(tracer.dag_builder.dag)
    assert found[:2] == ["cv2.resize", "numpy.isubtract"]
    assert found.count("numpy.ndarray.mean") == 2
    assert not tracer.notes


def test_a_block_that_returns_is_seen_through_its_calls() -> None:
    tracer = EnhancedTracer(track_memory=False)

    def inner():
        with tracer.tracing_context():
            return pipelines.image_pipeline([pipelines.IMAGE])

    assert len(inner()) == 1
    assert names(tracer.dag_builder.dag) == ["cv2.resize", "cv2.cvtColor", "numpy.divide"]
    assert "returns" in tracer.notes[0].en


def test_module_level_block(tmp_path: Path) -> None:
    (tmp_path / "block_of_a_module.py").write_text(
        "import cv2, numpy as np\n"
        "from torchstone.dataflow import EnhancedTracer\n"
        "tracer = EnhancedTracer(track_memory=False)\n"
        "image = np.zeros((8, 8, 3), np.uint8)\n"
        "def f(x):\n    return x * 2\n"
        "with tracer.tracing_context():\n"
        "    small = cv2.resize(image, (4, 4))\n"
        "    double = f(small)\n"
        "after = double + 1\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        module = importlib.import_module("block_of_a_module")
    finally:
        sys.path.remove(str(tmp_path))
    assert module.after.shape == (4, 4, 3)
    assert names(module.tracer.dag_builder.dag) == ["cv2.resize", "numpy.multiply"]


def test_the_users_exception_goes_through_and_the_graph_stays() -> None:
    tracer = EnhancedTracer(track_memory=False)
    with pytest.raises(ValueError, match="cannot reshape") as caught, tracer.tracing_context():
        pipelines.fails(pipelines.IMAGE)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hooks.py" not in shown
    assert "small.reshape(5, 5)" in shown
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] == [
        "test_the_users_exception_goes_through_and_the_graph_stays", "fails",
    ]  # fmt: skip
    assert caught.value.__context__ is None
    assert "cv2.resize" in names(tracer.dag_builder.dag)
    failed = [node for node in tracer.dag_builder.dag.functions() if node.error]
    assert failed[-1].error == "ValueError"


def test_a_block_on_the_line_of_its_with_runs_once() -> None:
    tracer, made = EnhancedTracer(track_memory=False), []
    with tracer.tracing_context(): made.append(pipelines.shrink(pipelines.IMAGE, 1))  # fmt: skip # noqa: E701
    assert len(made) == 1
    assert "cv2.resize" in names(tracer.dag_builder.dag)
    assert "line of its `with`" in tracer.notes[0].en


def test_contexts_that_are_entered_after_the_trace_hold_for_the_block() -> None:
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context(), np.errstate(divide="raise"):
        set_inside = np.geterr()["divide"]
        pipelines.shrink(pipelines.IMAGE, 1)
    assert set_inside == "raise"
    assert "cv2.resize" in names(tracer.dag_builder.dag)
    with np.errstate(divide="ignore"), tracer.tracing_context():
        set_inside = np.geterr()["divide"]
        flipped = pipelines.IMAGE + 1
    assert set_inside == "ignore"
    assert "numpy.add" in names(tracer.dag_builder.dag)
    assert flipped.shape == pipelines.IMAGE.shape


def test_an_interrupt_goes_through() -> None:
    tracer = EnhancedTracer(track_memory=False)
    with pytest.raises(KeyboardInterrupt), tracer.tracing_context():
        pipelines.interrupted(pipelines.IMAGE)
    assert "cv2.flip" in names(tracer.dag_builder.dag)


_DEEP = """
import sys

import cv2
import numpy as np

from torchstone.dataflow import EnhancedTracer

image = np.ones((8, 8, 3), np.uint8)


def flip_often(image, times):
    return image if times == 0 else flip_often(cv2.flip(image, 0), times - 1)


limit = sys.getrecursionlimit()
tracer = EnhancedTracer(track_memory=False)
with tracer.tracing_context():
    found = flip_often(image, limit - 20)
assert found.shape == image.shape
assert "cv2.flip" in {node.name for node in tracer.dag_builder.dag.nodes.values()}
assert sys.getrecursionlimit() == limit
try:
    with tracer.tracing_context():
        flip_often(image, -1)
except RecursionError:
    print("refused at the same depth")
"""


def test_a_program_may_recurse_as_deep_as_without_a_trace(tmp_path: Path) -> None:
    # a process of its own has the recursion limit and the stack of an ordinary program
    (tmp_path / "deep.py").write_text(_DEEP)
    done = subprocess.run(
        [sys.executable, "deep.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "refused at the same depth\n"), done.stderr


def test_one_tracer_at_a_time_and_a_forgotten_one_ends() -> None:
    first, second = EnhancedTracer(track_memory=False), EnhancedTracer(track_memory=False)
    first.start_tracing()
    with pytest.raises(UsageError, match="one tracer at a time"):
        second.start_tracing()
    del first  # its variable was overwritten, as happens in a notebook
    assert pipelines.shrink.__code__ is CODES["shrink"]
    with second.tracing_context():
        pipelines.shrink(pipelines.IMAGE, 1)
    assert "cv2.resize" in names(second.dag_builder.dag)


def test_recursion_and_depth() -> None:
    tracer = EnhancedTracer(max_depth=2, track_memory=False)
    with tracer.tracing_context():
        pipelines.shrink(pipelines.IMAGE, 3)
    assert tracer.dag_builder.dag.is_acyclic()
    deep = EnhancedTracer(max_depth=20, track_memory=False)
    with deep.tracing_context():
        pipelines.shrink(pipelines.IMAGE, 3)
    assert names(deep.dag_builder.dag).count("cv2.resize") == 3
    assert names(tracer.dag_builder.dag).count("cv2.resize") < 3


def test_a_generator_left_open_works_on() -> None:
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        left = pipelines.frames(3)
        next(left)
    before = len(tracer.dag_builder.dag.nodes)
    assert next(left).shape == (32, 32, 3)
    assert len(tracer.dag_builder.dag.nodes) == before
    assert names(tracer.dag_builder.dag) == ["cv2.flip"]


def test_a_thread_that_outlives_the_trace() -> None:
    done, go = threading.Event(), threading.Event()
    tracer = EnhancedTracer(track_memory=False)
    thread = threading.Thread(target=pipelines.in_thread, args=(done, go))
    tracer.start_tracing()
    thread.start()
    done.wait(10)
    tracer.stop_tracing()
    go.set()
    thread.join()
    assert "cv2.flip" not in names(tracer.dag_builder.dag)


def test_functions_without_data_shed_their_hooks() -> None:
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    assert pipelines.fibonacci.__code__ is not CODES["fibonacci"]
    assert pipelines.fibonacci(12) == 144
    assert pipelines.fibonacci.__code__ is CODES["fibonacci"]
    assert pipelines.image_pipeline.__code__ is not CODES["image_pipeline"]
    tracer.stop_tracing()


def test_long_lists_and_objects_without_weak_references() -> None:
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    pipelines.long_list()
    pipelines.through_slots()
    tracer.stop_tracing()
    assert {"cv2.flip", "cv2.resize", "numpy.array"} <= set(names(tracer.dag_builder.dag))
    assert len(tracer.dag_builder.dag.nodes) < 20


def test_arrays_are_not_kept_alive() -> None:
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    made = pipelines.image_pipeline([pipelines.IMAGE])
    import weakref

    reference = weakref.ref(made[0])
    del made
    gc.collect()
    assert reference() is None
    tracer.stop_tracing()


def test_too_many_events_stop_the_recording() -> None:
    tracer = EnhancedTracer(track_memory=False, max_events=10)
    with tracer.tracing_context():
        result = pipelines.image_pipeline([pipelines.IMAGE] * 20)
    assert len(result) == 20
    assert "recording stopped after 10 events" in tracer.notes[0].en


def test_modules_imported_on_the_way_are_traced(tmp_path: Path) -> None:
    (tmp_path / "imported_late.py").write_text(
        "import numpy as np\nTABLE = np.arange(4) * 2\ndef double(x):\n    return x + TABLE\n"
    )
    sys.path.insert(0, str(tmp_path))
    tracer = EnhancedTracer(track_memory=False)
    try:
        tracer.start_tracing()
        module = importlib.import_module("imported_late")
        module.double(np.ones(4))
        tracer.stop_tracing()
    finally:
        sys.path.remove(str(tmp_path))
    assert names(tracer.dag_builder.dag) == ["numpy.arange", "numpy.multiply", "numpy.add"]
    assert not any(callable(item) for item in module.double.__code__.co_consts)


def test_filter_and_wrong_use() -> None:
    tracer = EnhancedTracer(filter_config={"exclude_modules": ["cv2"]}, track_memory=False)
    tracer.start_tracing()
    pipelines.image_pipeline([pipelines.IMAGE])
    with pytest.raises(UsageError):
        tracer.start_tracing()
    tracer.stop_tracing()
    tracer.stop_tracing()
    assert names(tracer.dag_builder.dag) == ["numpy.divide"]
    with pytest.raises(UsageError):
        EnhancedTracer(max_depth=0)
    with pytest.raises(UsageError):
        EnhancedTracer(filter_config={"exclud_modules": []})


class Unwilling(list):
    """A container that does not let itself be looked through."""

    def __iter__(self):
        raise RuntimeError("not now")


def test_an_object_that_cannot_be_looked_at_is_noted() -> None:
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    assert pipelines.length_of(Unwilling([pipelines.IMAGE])) == 1
    tracer.stop_tracing()
    assert any("not now" in note.en for note in tracer.notes)


def test_a_file_that_is_loaded_by_its_path_is_traced(tmp_path: Path) -> None:
    path = tmp_path / "loaded_by_path.py"
    path.write_text("import cv2\ndef shrink(image):\n    return cv2.resize(image, (4, 4)) + 1\n")
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        spec = importlib.util.spec_from_file_location("loaded_by_path", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.shrink(pipelines.IMAGE)
    assert names(tracer.dag_builder.dag) == ["cv2.resize", "numpy.add"]
    assert "get_code" not in vars(importlib.machinery.SourceFileLoader)


def test_what_the_program_still_holds_is_a_result() -> None:
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        kept = pipelines.shrink(pipelines.IMAGE, 1)
        pipelines.shrink(pipelines.shrink(kept, 1), 1)
    made = [
        n for n in tracer.dag_builder.dag.nodes.values() if n.name.startswith(("kept", "resize"))
    ]
    assert [node.performance.get("held", 0.0) for node in made] == [1.0, 0.0, 0.0]
    assert kept.shape == (16, 16, 3)
