"""Both examples of the guide run as they are written, but for their imports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent / "examples"


def run_example(text: str, folder: Path) -> str:
    script = folder / "example.py"
    script.write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, script.name], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_whole_first_example(tmp_path: Path) -> None:
    out = run_example((EXAMPLES / "pipeline.py").read_text("utf-8"), tmp_path)
    # which of the two functions pays is a matter of the machine's clock; none may fail
    assert re.search(r"迁移状态: {'patched': [012], 'failed': 0, 'skipped': 0}", out)
    assert "GPU 结果数量: 10" in out
    assert "Applied: False" in out
    assert "粗化: {'original_nodes': 71, 'coarsened_nodes': 8" in out
    assert "划分: " in out
    assert "Node 0: image_pipeline (function_call)" in out
    assert "--produces-->" in out
    assert "Load balance: " in out
    written = {path.name for path in (tmp_path / "output").iterdir()}
    assert {"dataflow.json", "dataflow.svg", "migration_plan.json", "coarsened_dag.json"} <= written
    assert json.loads((tmp_path / "output" / "dataflow.json").read_text("utf-8"))["edges"]
    plan = json.loads((tmp_path / "output" / "migration_plan.json").read_text("utf-8"))
    assert "context_device_map" in plan


def test_the_loader_example(tmp_path: Path) -> None:
    out = run_example((EXAMPLES / "loader.py").read_text("utf-8"), tmp_path)
    assert "Batch shape: torch.Size([4, 224, 224, 3])" in out
