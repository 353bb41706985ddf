"""Both examples of the guide run as they are written, with the guide's own import lines.

All in one process of its own: the lines name top-level packages, and loading torch takes seconds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent / "examples"
DRIVER = f"""
import runpy
for name in ("pipeline", "loader"):
    runpy.run_path(rf"{EXAMPLES}/{{name}}.py", run_name="__main__")
import torchstone.dataflow as ours
from core.enhanced_tracer import EnhancedTracer
from optimizer import OptimizerManager
from optimizer.kway_partitioner import KWayPartitioner
from migration import PipelineMigrator, list_supported_functions
assert EnhancedTracer is ours.EnhancedTracer
assert OptimizerManager is ours.OptimizerManager
assert KWayPartitioner is ours.KWayPartitioner
migrator = PipelineMigrator.from_plan({{"context_device_map": {{}}}}, default_device="cpu")
assert migrator.default_device == "cpu"
assert "cv2.resize" in migrator.registry
assert migrator.processors.get_input_processor("image") is not None
assert migrator.context_tracker.depth == 0
from optimizer.optimizer_manager import OptimizerManager as manager
assert manager is OptimizerManager
from training_profiler import watch_training, analyze_tensor
from llm_perf_opt.runners.dsocr_session import DeepSeekOCRSession
from llm_perf_opt.runners.dsocr_analyzer import AnalysisConfig, DeepseekOCRStaticAnalyzer
from llm_perf_opt.profiling.export import write_static_compute_json, write_static_compute_markdown
import torchstone, torchstone.cost
assert watch_training is torchstone.watch_training
assert analyze_tensor is torchstone.analyze_tensor
assert DeepseekOCRStaticAnalyzer is torchstone.cost.DeepseekOCRStaticAnalyzer
try:
    from optimizer import nothing
except ImportError:
    print("refused")
"""


def run(folder: Path, text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("guide")
    return run(folder, DRIVER), folder / "output"


def test_the_whole_first_example(ran: tuple[str, Path]) -> None:
    out, folder = ran
    # which of the two functions pays is a matter of the machine's clock; none may fail
    assert re.search(r"迁移状态: {'patched': [012], 'failed': 0, 'skipped': 0}", out)
    assert "GPU 结果数量: 10" in out
    assert "Applied: False" in out
    assert "粗化: {'original_nodes': 71, 'coarsened_nodes': 8" in out
    assert "划分: " in out
    assert "Node 0: image_pipeline (function_call)" in out
    assert "--produces-->" in out
    assert "Load balance: " in out
    written = {path.name for path in folder.iterdir()}
    assert {"dataflow.json", "dataflow.svg", "migration_plan.json", "coarsened_dag.json"} <= written
    assert json.loads((folder / "dataflow.json").read_text("utf-8"))["edges"]
    plan = json.loads((folder / "migration_plan.json").read_text("utf-8"))
    assert "context_device_map" in plan


def test_the_loader_example_and_the_import_lines(ran: tuple[str, Path]) -> None:
    out, _ = ran
    assert "Batch shape: torch.Size([4, 224, 224, 3])" in out
    assert out.splitlines()[-1] == "refused"


def test_a_package_of_the_program_wins(tmp_path: Path) -> None:
    (tmp_path / "core.py").write_text("mine = 1\n")
    assert run(tmp_path, "import torchstone.aliases, core; print(core.mine)") == "1\n"
