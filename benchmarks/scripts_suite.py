"""Faulty single-process training scripts and their right twins: which are found, which accused.

python benchmarks/scripts_suite.py tuned       the cases that were looked at while building
python benchmarks/scripts_suite.py held_out    those that were written before they were run
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "scripts"


def rules_of(script: Path) -> tuple[list[tuple[str, int]], int]:
    """Rules and lines that a dry run reports, and the number of gaps."""
    from torchstone.dryrun.run import dry_run

    report = dry_run(script.name)
    return [(item.rule, item.line) for item in report.findings], len(report.gaps)


def main(words: list[str]) -> int:
    part = words[0] if words else "tuned"
    found = accused = total = 0
    for folder in sorted((HERE / part).iterdir()):
        if words[1:] and folder.name not in words[1:]:
            continue
        expect = re.search(r"^Expect: (.*)$", (folder / "faulty.py").read_text("utf-8"), re.M)
        assert expect, folder
        with tempfile.TemporaryDirectory() as place:
            for script in folder.iterdir():
                (Path(place) / script.name).write_bytes(script.read_bytes())
            os.chdir(place)
            bad, gaps = rules_of(Path("faulty.py"))
            good, good_gaps = rules_of(Path("right.py"))
            os.chdir(HERE)
        hit = any(rule in expect[1].split() for rule, _ in bad)
        total, found, accused = total + 1, found + hit, accused + bool(good)
        said = ", ".join(f"{rule} line {line}" for rule, line in bad) or "nothing"
        twin = f"ACCUSED {good}" if good else "clean"
        print(f"{folder.name:34} {'found ' if hit else 'MISSED'} {said} (expected {expect[1]}), twin {twin}"
              f"{' GAPS' if gaps or good_gaps else ''}", flush=True)  # fmt: skip
    print(f"{part}: {found} of {total} found, {accused} twins accused")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
