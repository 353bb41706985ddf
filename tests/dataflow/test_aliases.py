"""The import lines of the guide, in a process of their own: they name top-level packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LINES = """
import torchstone.aliases
from core.enhanced_tracer import EnhancedTracer
from optimizer import OptimizerManager
from optimizer.kway_partitioner import KWayPartitioner
from migration import PipelineMigrator, list_supported_functions
import torchstone.dataflow as ours
assert EnhancedTracer is ours.EnhancedTracer
assert OptimizerManager is ours.OptimizerManager
assert KWayPartitioner is ours.KWayPartitioner
migrator = PipelineMigrator.from_plan({"context_device_map": {}}, default_device="cpu")
assert migrator.default_device == "cpu"
assert "cv2.resize" in migrator.registry
assert migrator.processors.get_input_processor("image") is not None
assert migrator.context_tracker.depth == 0
try:
    from optimizer import nothing
except ImportError:
    print("refused")
"""


PROFILER = """
import torchstone.aliases
from training_profiler import watch_training, analyze_tensor
from llm_perf_opt.runners.dsocr_session import DeepSeekOCRSession
from llm_perf_opt.runners.dsocr_analyzer import AnalysisConfig, DeepseekOCRStaticAnalyzer
from llm_perf_opt.profiling.export import write_static_compute_json, write_static_compute_markdown
import torchstone, torchstone.cost
assert watch_training is torchstone.watch_training
assert analyze_tensor is torchstone.analyze_tensor
assert DeepseekOCRStaticAnalyzer is torchstone.cost.DeepseekOCRStaticAnalyzer
print("all")
"""


def run(folder: Path, text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_lines_of_the_guide(tmp_path: Path) -> None:
    assert run(tmp_path, LINES) == "refused"


def test_the_lines_of_the_profiler_and_the_analyzer(tmp_path: Path) -> None:
    assert run(tmp_path, PROFILER) == "all"


def test_a_package_of_the_program_wins(tmp_path: Path) -> None:
    (tmp_path / "core.py").write_text("mine = 1\n")
    assert run(tmp_path, "import torchstone.aliases, core; print(core.mine)") == "1"
