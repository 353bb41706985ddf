"""`check` beside bare `ast.parse`, TorchFix and ruff on the torch files of transformers' models."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROUNDS = 3
START_ROUNDS = 11
SAMPLE = 100
PYTHON = sys.executable
ROOT = Path(__file__).parent.parent
PEERS = ROOT / "build" / "peers"

PARSE = """
import ast, sys
for name in open(sys.argv[1]).read().splitlines():
    ast.parse(open(name, 'rb').read())
"""


@dataclass(frozen=True)
class Cost:
    """What one process cost."""

    cpu_s: float
    peak_mb: float
    code: int


def cost(command: list[str], env: dict[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """CPU seconds and peak memory of one child process."""
    # an installed package comes compiled: without this, editable sources would be compiled anew
    env = {k: v for k, v in (env or os.environ).items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=cwd
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode)


def corpus() -> list[Path]:
    """The files of transformers' models that hold the word torch."""
    spec = find_spec("transformers")
    assert spec is not None
    assert spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0]) / "models"
    return sorted(path for path in home.rglob("*.py") if b"torch" in path.read_bytes())


def torchfix() -> list[str] | None:
    """TorchFix in an environment of its own: it is archived and must not touch ours."""
    program = PEERS / "torchfix" / "bin" / "python"
    if not program.exists():
        subprocess.run([PYTHON, "-m", "venv", str(PEERS / "torchfix")], check=True)
        done = subprocess.run(
            [str(program), "-m", "pip", "install", "-q", "torchfix==0.7.0"], capture_output=True
        )
        if done.returncode:
            shutil.rmtree(PEERS / "torchfix")
            return None
    return [str(program), "-m", "torchfix", "--select=ALL"]


def run() -> str:
    files = corpus()
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join(
            (_corpus(files, lines, Path(folder)), _peers(files, Path(folder)), _start(Path(folder)))
        )


def _link(files: list[Path], folder: Path) -> Path:
    """The files alone in a folder, so that every tool gets the same work."""
    folder.mkdir()
    home = os.path.commonpath(files)
    for path in files:
        target = folder / path.relative_to(home)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def _corpus(files: list[Path], lines: int, folder: Path) -> str:
    tree = _link(files, folder / "corpus")
    listing = folder / "files.txt"
    listing.write_text("\n".join(str(path) for path in tree.rglob("*.py")))
    stone = [PYTHON, "-m", "torchstone", "check", "--format", "concise", "--jobs", "1", str(tree)]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    parse, cold, warm, ruff = [], [], [], []
    for _ in range(ROUNDS):
        parse.append(cost([PYTHON, "-c", PARSE, str(listing)]))
        shutil.rmtree(folder / "cache", ignore_errors=True)
        cold.append(cost(stone, env))
        warm.append(cost(stone, env))
        ruff.append(
            cost(
                [PYTHON, "-m", "ruff", "check", "--select", "ALL", "--no-cache", str(tree)],
                {**os.environ, "RAYON_NUM_THREADS": "1"},
            )
        )
    base = statistics.median(item.cpu_s for item in parse)
    rows = [
        ("bare `ast.parse`", parse, ""),
        ("`torchstone check`, all rules, cold", cold, "≤ 2.0"),
        ("`torchstone check`, warm cache", warm, "≤ 0.1"),
        ("ruff, all its rules, one thread", ruff, ""),
    ]
    out = [
        f"## `check` over {len(files)} torch files of transformers' models ({lines:,} lines)",
        "",
        "`python benchmarks/run.py check`",
        "",
        "| what | CPU s, median (range) | × `ast.parse` | goal | peak MB |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, costs, goal in rows:
        seconds = sorted(item.cpu_s for item in costs)
        middle = statistics.median(seconds)
        out.append(
            f"| {name} | {middle:.2f} ({seconds[0]:.2f}–{seconds[-1]:.2f}) | {middle / base:.2f} | "
            f"{goal} | {max(item.peak_mb for item in costs):.0f} |"
        )
    return "\n".join(out) + "\n"


def _peers(files: list[Path], folder: Path) -> str:
    """A sample, because TorchFix would need half an hour for all."""
    sample = _link(files[::SAMPLE], folder / "sample")
    lines = sum(path.read_bytes().count(b"\n") for path in sample.rglob("*.py"))
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache2")}
    peer = torchfix()
    out = [f"## Beside TorchFix, every {SAMPLE}th of these files ({lines:,} lines)", ""]
    if peer is None:
        return "\n".join([*out, "TorchFix could not be installed here: no figure.", ""])
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(
            cost([PYTHON, "-m", "torchstone", "check", "--no-cache", str(sample)], env).cpu_s
        )
        theirs.append(cost([*peer, str(sample)], env).cpu_s)
    mine, other = statistics.median(ours), statistics.median(theirs)
    return "\n".join([
        *out, "| what | CPU s | lines a CPU s | ratio | goal |", "|---|--:|--:|--:|--:|",
        f"| `torchstone check --no-cache` | {mine:.2f} | {lines / mine:,.0f} | 1 | |",
        f"| TorchFix 0.7.0 `--select=ALL` | {other:.2f} | {lines / other:,.0f} | {other / mine:.0f} × slower | ≥ 50 × |",
        "", "Start-up is part of both.", "",
    ])  # fmt: skip


def _start(folder: Path) -> str:
    project = folder / "one"
    project.mkdir()
    (project / "train.py").write_text(
        "import torch\n\n\ndef step(model, x, y, loss_fn, optimizer):\n    loss = loss_fn(model(x), y)\n"
        "    loss.backward()\n    optimizer.step()\n    return loss\n"
    )
    program = str(Path(PYTHON).parent / "torchstone")
    commands = {
        "`python -c pass`": [PYTHON, "-c", "pass"],
        "`torchstone --version`": [program, "--version"],
        "`torchstone check` on a one-file project": [program, "check", "--no-cache", str(project)],
        "`torchstone explain TS101`": [program, "explain", "TS101"],
        "`torchstone --help`": [program, "--help"],
        "`ruff --version`": [PYTHON, "-m", "ruff", "--version"],
        "`mypy --version`": [PYTHON, "-m", "mypy", "--version"],
    }
    goals = {"`torchstone --version`": "≤ 4", "`torchstone check` on a one-file project": "≤ 10"}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(START_ROUNDS + 1):
        for name, command in commands.items():
            seconds[name].append(cost(command).cpu_s)
    seconds = {name: costs[1:] for name, costs in seconds.items()}  # the first round compiles
    base = statistics.median(seconds["`python -c pass`"])
    out = [
        "## Start-up",
        "",
        "| command | CPU ms, median (min) | × `python -c pass` | goal |",
        "|---|--:|--:|--:|",
    ]
    for name, costs in seconds.items():
        middle = statistics.median(costs)
        out.append(
            f"| {name} | {middle * 1e3:.0f} ({min(costs) * 1e3:.0f}) | {middle / base:.1f} | {goals.get(name, '')} |"
        )
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    print(run())
