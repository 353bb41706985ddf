"""Cell magics in a real IPython shell, and the example notebook as it is shipped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("IPython")

EXAMPLE = Path(__file__).parents[2] / "examples" / "torchstone.ipynb"
RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for source in json.load(open(sys.argv[1])):
    done = shell.run_cell(source, store_history=True)
    value = done.result
    page = value._repr_html_() if hasattr(value, "_repr_html_") else ""
    print("RESULT", json.dumps([done.success, type(value).__name__, len(page), repr(value)[:400]]))
"""


def results_of(cells: list[str], folder: Path) -> tuple[list[list[object]], str]:
    """Success, type, length of the page and text of every cell; and all that was printed."""
    (folder / "cells.json").write_text(json.dumps(cells))
    (folder / "run.py").write_text(RUN)
    words = [sys.executable, "run.py", "cells.json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith("RESULT ")]  # fmt: skip
    return [json.loads(row) for row in rows], done.stdout


def test_the_example_runs_and_its_reports_draw_themselves(tmp_path: Path) -> None:
    cells = [item["source"] for item in json.loads(EXAMPLE.read_text()) ["cells"] if item["cell_type"] == "code"]  # fmt: skip
    rows, said = results_of(cells, tmp_path)
    assert all(row[0] for row in rows)
    checked, cost = (row for row in rows if row[2])
    assert checked[1] == "Report"
    assert "1 HIGH" in str(checked[3])
    assert "no alert in 150 steps" in said
    assert "CostReport" in str(cost[1])


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    cells = [
        "%load_ext torchstone",
        "%%watch\nx = 1",
        "%%watch model\nx = 1",
        "%%check --all\nx = 1",
        "%%check\nvalue = 41 + 1",
        "value",
    ]
    rows, said = results_of(cells, tmp_path)
    assert "torchstone: %%watch: got 0 models (none), expected one model" in said
    assert "torchstone: %%watch: got 'model', expected the name of a model" in said
    assert "torchstone: %%check: got --all" in said
    assert rows[-1][3] == "42", "the cell ran"
