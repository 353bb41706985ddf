"""Faulty distributed programs and their right twins: which are found, which twins are accused.

python benchmarks/ranks_suite.py tuned             the cases that were looked at while building
python benchmarks/ranks_suite.py held_out          those that were not
python benchmarks/ranks_suite.py tuned --real      run for real with gloo: does it hang or raise, do replicas differ?
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "ranks"
REAL_SECONDS = 120
IDLE_SECONDS = 8


@dataclass(frozen=True)
class Case:
    name: str
    folder: Path
    expected: tuple[str, ...]
    world: int

    def script(self, kind: str) -> Path:
        return self.folder / f"{kind}.py"


def cases(part: str) -> list[Case]:
    found = []
    for folder in sorted((HERE / part).iterdir()):
        head = (folder / "faulty.py").read_text("utf-8")
        rules = re.search(r"^Expect: (.*)$", head, re.M)
        world = re.search(r"^World: (\d+)$", head, re.M)
        assert rules, folder
        assert world, folder
        found.append(Case(folder.name, folder, tuple(rules[1].split()), int(world[1])))
    return found


def dry(case: Case, kind: str) -> tuple[tuple[str, ...], int, float]:
    """Rules that were reported, the number of gaps, and seconds."""
    from torchstone.dryrun.options import DryRunOptions
    from torchstone.dryrun.run import dry_run_command

    start = time.monotonic()
    options = DryRunOptions(target=str(case.script(kind)), world_size=case.world)
    report = dry_run_command(options)
    rules = tuple(finding.rule for finding in report.findings)
    return rules, len(report.gaps), time.monotonic() - start


THEN_SUM = """
import gc, pathlib, runpy, sys, torch
sys.argv = sys.argv[1:]
held = runpy.run_path(sys.argv[0], run_name="__main__")
models = [item for item in gc.get_objects() if isinstance(item, torch.nn.Module)]
inner = {id(part) for item in models for part in item.children()}
tensors = [part for item in models if id(item) not in inner for part in item.state_dict().values()]
total = sum(float(part.double().abs().sum()) for part in tensors)
pathlib.Path(sys.argv.pop()).write_text(f"{len(tensors)} {total!r}")
"""
"""Runs a script and leaves the sum of what its models hold: equal replicas have equal sums."""
SILENT = ("DR608", "DR609", "DR610")
"""Faults that neither hang nor raise: replicas that differ."""


def real(case: Case, kind: str, port: int) -> str:
    """`clean`, `raises`, `hangs` or `differs`, with real processes and gloo."""
    with tempfile.TemporaryDirectory() as folder:
        said = _real(case, kind, port, Path(folder))
        sums = {file.read_text() for file in Path(folder).iterdir()}
    silent = any(rule in SILENT for rule in case.expected)
    return "differs" if said == "clean" and silent and len(sums) > 1 else said


def _real(case: Case, kind: str, port: int, folder: Path) -> str:
    processes = []
    for rank in range(case.world):
        environment = {
            **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(case.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        script = str(case.script(kind))
        command = [sys.executable, "-c", THEN_SUM, script, str(folder / str(rank))]
        processes.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
    end = time.monotonic() + REAL_SECONDS
    try:
        _wait(processes, end)
        codes = [item.poll() for item in processes]
    finally:
        for item in processes:
            item.kill()
            item.wait()
    if any(code not in (None, 0) for code in codes):
        return "raises"
    return "hangs" if any(code is None for code in codes) else "clean"


def _wait(processes: list[subprocess.Popen[bytes]], end: float) -> None:
    """Until all have ended, or none of those that live has used the processor for a while."""
    before, since = -1, time.monotonic()
    while time.monotonic() < end:
        live = [item for item in processes if item.poll() is None]
        if not live:
            return
        used = sum(map(_ticks, live))
        if used > before + 3:  # background threads tick now and then
            before, since = used, time.monotonic()
        elif time.monotonic() - since > IDLE_SECONDS:
            return
        time.sleep(0.5)


def _ticks(process: subprocess.Popen[bytes]) -> int:
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def main(words: list[str]) -> int:
    part = words[0] if words else "tuned"
    only = [word for word in words[1:] if not word.startswith("-")]
    found = accused = total = 0
    for number, case in enumerate(cases(part)):
        if only and case.name not in only:
            continue
        if "--real" in words:
            port = 29600 + 2 * number
            print(
                f"{case.name:32} faulty {real(case, 'faulty', port):8} right {real(case, 'right', port + 1)}",
                flush=True,
            )
            continue
        total += 1
        bad, gaps, seconds = dry(case, "faulty")
        good, good_gaps, good_seconds = dry(case, "right")
        hit = bool(set(bad) & set(case.expected))
        found += hit
        accused += bool(good)
        print(
            f"{case.name:32} {'found ' if hit else 'MISSED'} {','.join(bad) or '-':14} "
            f"(expected {','.join(case.expected)}) twin {'ACCUSED ' + ','.join(good) if good else 'clean'}"
            f"{' GAPS' if gaps or good_gaps else ''}  {seconds:.1f} s, {good_seconds:.1f} s",
            flush=True,
        )
    if total:
        print(f"{part}: {found} of {total} found, {accused} twins accused")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
