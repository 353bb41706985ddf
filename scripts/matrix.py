"""Runs every tool with other versions of torch and Python and writes the table of docs/versions.md.

python scripts/matrix.py [NAME | NAME=PYTHON ...]

Environments are made in build/matrix (minutes and gigabytes, once); with `NAME=PYTHON` a cell uses
an interpreter that is already there. Without arguments all cells are tried.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "docs" / "versions.md", ROOT / "docs" / "zh" / "versions.md")
SMOKE = ROOT / "tests" / "matrix"
COMMON = ("pathspec", "packaging", "PyYAML", "scipy")
BEGIN, END = "<!-- matrix -->", "<!-- /matrix -->"


@dataclass(frozen=True)
class Cell:
    """One environment: the Python it is made with, and what is installed beside Torchstone."""

    name: str
    python: str
    packages: tuple[str, ...]


CELLS = (
    Cell("oldest", "python3.11", ("torch==2.6.0", "numpy==1.26.4", "transformers>=4.50,<4.58")),
    Cell("middle", "python3.13", ("torch==2.9.1", "numpy>=2", "transformers>=4.50,<5")),
    Cell("newest", "python3.11", ("torch", "numpy", "transformers")),
)
_VERSIONS = """
import platform, sys
from importlib import metadata
print(platform.python_version())
for name in ("torch", "numpy", "transformers"):
    print(metadata.version(name))
import torch
print(torch.version.cuda or "")
"""


@dataclass(frozen=True)
class Result:
    """What is installed in a cell, and how each row of the table went."""

    versions: tuple[str, ...]
    rows: dict[str, str]


def main(words: list[str]) -> int:
    given = {name: python for name, _, python in (word.partition("=") for word in words)}
    unknown = given.keys() - {cell.name for cell in CELLS}
    if unknown:
        print(f"matrix: no cell named {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    cells = [cell for cell in CELLS if not given or cell.name in given]
    results = [_try(cell, given.get(cell.name) or _make(cell)) for cell in cells]
    table = _table(results)
    print(table)
    if len(results) == len(CELLS):
        for page in PAGES:
            _write(page, table)
    return 0 if all(set(one.rows.values()) == {"✓"} for one in results) else 1


def _make(cell: Cell) -> str:
    folder = ROOT / "build" / "matrix" / cell.name
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        found = shutil.which(cell.python)
        if found is None:
            raise SystemExit(
                f"matrix: {cell.python} is not on the PATH; install it or give {cell.name}=PYTHON"
            )
        subprocess.run([found, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *COMMON, *cell.packages]
        subprocess.run(install, check=True)
        (folder / "done").touch()
    return str(python)


def _try(cell: Cell, python: str) -> Result:
    print(f"matrix: {cell.name} ({python})", file=sys.stderr, flush=True)
    said = subprocess.run([python, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    report = ROOT / "build" / "matrix" / f"{cell.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "pytest", str(SMOKE), "-m", "side", "--python", python, "-q",
         "--tb=short", f"--junitxml={report}"],
        cwd=ROOT, check=False, stdout=sys.stderr,
    )  # fmt: skip
    cases = ElementTree.parse(report).iter("testcase")
    passed = {case.attrib["name"]: "✓" if not len(case) else "✗" for case in cases}
    return Result(
        tuple(said.stdout.split("\n")[:5]), {text: passed.get(name, "✗") for name, text in _rows()}
    )


def _rows() -> list[tuple[str, str]]:
    """Tests of the smoke suite with what the table says of each."""
    source = (SMOKE / "test_smoke.py").read_text("utf-8")
    return re.findall(r'^def (test_\w+)\([^)]*\) -> None:\n    """(.+)"""$', source, re.M)


def _table(results: list[Result]) -> str:
    heads = [
        f"torch {torch}{f' (CUDA {cuda} build)' if cuda else ''}, Python {python}, numpy {numpy}, transformers {hub}"
        for python, torch, numpy, hub, cuda in (one.versions for one in results)
    ]
    lines = [
        "| " + " | ".join(["", *heads]) + " |",
        "|" + "---|" * (len(heads) + 1),
        *(
            "| " + " | ".join([text, *(one.rows[text] for one in results)]) + " |"
            for _, text in _rows()
        ),
    ]
    return f"{time.strftime('%Y-%m-%d')}\n\n" + "\n".join(lines)


def _write(page: Path, table: str) -> None:
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
