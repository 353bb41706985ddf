"""`make bench`: Torchstone beside its peers, in one run, as ratios of CPU time.

python benchmarks/run.py            everything, and docs/benchmarks.md is written
python benchmarks/run.py check      one part
"""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))


def main(words: list[str]) -> int:
    names = words or sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    parts = [importlib.import_module(f"bench_{name}").run() for name in names]
    text = "\n".join(parts)
    print(text)
    if not words:
        head = (
            "# Benchmarks\n\nMade by `make bench` "
            f"(Python {platform.python_version()}, {platform.system()} {platform.machine()}). All figures are "
            "CPU time (user + system), of whole processes unless a section says otherwise, interleaved in one run; ratios travel between "
            "machines, seconds do not.\n\n"
        )
        (ROOT / "docs").mkdir(exist_ok=True)
        (ROOT / "docs" / "benchmarks.md").write_text(head + text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
