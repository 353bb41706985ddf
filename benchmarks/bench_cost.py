"""`cost` beside the other FLOP counters: how right, how fast, how much memory it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cost_models import SUBJECTS

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent
PEERS = ("fvcore", "calflops", "ptflops", "thop", "torchinfo", "deepspeed")
EXACT = 5e-7
"""Half of the sixth digit."""
NEAR = 0.01

COLUMNS = {
    "torchstone": "**torchstone**",
    "torchstone_train": "**torchstone, with backward**",
    "flop_counter": "FlopCounterMode",
    "flop_counter_train": "FlopCounterMode, with backward",
    "fvcore": "fvcore",
    "calflops": "calflops",
    "ptflops": "ptflops",
    "ptflops_aten": "ptflops aten",
    "thop": "thop",
    "torchinfo": "torchinfo",
    "deepspeed": "deepspeed",
}
FULL_GOAL, REPLAYED_GOAL, SECONDS_GOAL, MEMORY_GOAL_MB = 0.3, 0.1, 1.0, 1000
TIMED = {"llama3_8b": 7, "deepseek_v3": 4}
TRACKED = {"gpt2": 3, "resnet50": 3, "llama3_8b": 2}

TRUTH = (
    "`python benchmarks/run.py cost`. Truth is worked out by hand from the published sizes "
    "(`benchmarks/cost_models.py`): 2 x multiply-adds of matrix products, full attention and "
    "convolutions; the backward counts only the gradients that are needed. Tools that report "
    "multiply-adds are doubled. All but the two columns that say so: forward only. One child "
    "process for each figure."
)
TIME = (
    "Forward and backward, 1 x 2048 tokens, bfloat16; CPU time of one thread, in turns in one "
    "process, least of all rounds (most, in brackets) over the least of the bare pass. Ours "
    "counts FLOPs, bytes, calls and memory by module, phase and operator."
)
STEP = (
    "CPU time after the imports, the best of five processes (all: {all}); memory is the most that "
    "the whole process ever held, torch and transformers included."
)
MEMORY = (
    "With AdamW, the same kernels in both (attention unfused). Times as ratios to the bare "
    "forward and backward, least of all rounds."
)
MEMORY_COLUMNS = (
    "model",
    "MemTracker, bytes",
    "torchstone",
    "torchstone, replayed",
    "goal: equal",
    "MemTracker, time",
    "torchstone, time",
    "replayed, time",
)

Row = dict[str, Any]
Reasons = dict[tuple[str, str], list[str]]
"""(tool, reason) -> models on which it failed for that reason."""


def run() -> str:
    return "\n".join((_truth(), _time(), _step(), _memory()))


def _truth() -> str:
    """Reported by truth for every model and tool."""
    python, problem = _environment()
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in _lines([python, str(HERE / "cost_peers.py")]):
        found[row["model"]][row["tool"]] = row
    out = [
        f"## `cost` on {len(SUBJECTS)} models on the meta device: reported FLOPs / truth",
        "",
        f"{TRUTH} {_versions(python)}.",
        *([problem] if problem else []),
        "",
        "| model (input) | truth, forward | " + " | ".join(COLUMNS.values()) + " |",
        "|---|--:|" + "--:|" * len(COLUMNS),
    ]
    reasons: Reasons = defaultdict(list)
    for name, make in SUBJECTS.items():
        subject = make()
        cells = [_cell(found[name].get(tool), tool, name, reasons) for tool in COLUMNS]
        out.append(
            f"| {subject.name} ({subject.size}) | {subject.forward:.4g} | {' | '.join(cells)} |"
        )
    out += [_tally(found, "exact to six digits", EXACT), _tally(found, "within 1 %", NEAR), ""]
    if reasons:
        out += ["FAIL:", ""]
        out += [f"- {who} on {', '.join(where)}: `{why}`" for (who, why), where in reasons.items()]
        out.append("")
    return "\n".join([*out, _verdict(found), ""])


def _environment() -> tuple[str, str]:
    """The Python that has the peers; this one, and why, where they cannot be installed."""
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "side_environment.py"), ".venv-peers", *PEERS],
        stdout=subprocess.PIPE,
        text=True,
    )
    if made.returncode:
        return sys.executable, "The peers could not be installed here: their columns are empty."
    return made.stdout.strip().splitlines()[-1], ""


def _versions(python: str) -> str:
    ask = (
        "import importlib.metadata as m, sys\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(name, m.version(name))\n"
        "    except m.PackageNotFoundError: print(name, '(missing)')\n"
    )
    done = subprocess.run(
        [python, "-c", ask, "torch", "transformers", *PEERS], capture_output=True, text=True
    )
    return ", ".join(done.stdout.splitlines())


def _lines(command: list[str]) -> Iterable[Row]:
    """The JSON lines that a program prints; what else it prints is dropped."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)


def _ratio(row: Row | None, tool: str, name: str) -> float | None:
    if row is None or "flops" not in row:
        return None
    subject = SUBJECTS[name]()
    truth = subject.forward + (subject.backward if tool.endswith("_train") else 0)
    return float(row["flops"]) / truth


def _cell(row: Row | None, tool: str, name: str, reasons: Reasons) -> str:
    ratio = _ratio(row, tool, name)
    if ratio is not None:
        return f"{ratio:.6f}" if tool.startswith(("torchstone", "flop_counter")) else f"{ratio:.3f}"
    reason = row["error"] if row else "no answer"
    reasons[COLUMNS[tool].strip("*"), reason].append(SUBJECTS[name]().name)
    return "FAIL"


def _tally(found: dict[str, dict[str, Row]], what: str, bound: float) -> str:
    cells = []
    for tool in COLUMNS:
        ratios = [_ratio(found[name].get(tool), tool, name) for name in SUBJECTS]
        good = sum(ratio is not None and abs(ratio - 1) <= bound for ratio in ratios)
        cells.append(f"{good} of {len(SUBJECTS)}")
    return f"| *{what}* | | {' | '.join(cells)} |"


def _verdict(found: dict[str, dict[str, Row]]) -> str:
    ours = {
        (name, tool): _ratio(found[name].get(tool), tool, name)
        for name in SUBJECTS
        for tool in ("torchstone", "torchstone_train")
    }
    off = [
        f"{SUBJECTS[name]().name} {'with backward ' if tool.endswith('_train') else ''}"
        f"{ratio if ratio is None else format(ratio, '.6f')}"
        for (name, tool), ratio in ours.items()
        if ratio is None or abs(ratio - 1) > EXACT
    ]
    goal = "Goal: ratio 1.000000 on all, forward and with backward"
    return f"{goal}: {'**missed** on ' + ', '.join(off) if off else 'met'}."


def _clock(*words: str) -> Row:
    """One measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(HERE / "cost_clock.py"), *words],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    result: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def _met(value: float, goal: float) -> str:
    return "met" if value <= goal else f"**missed** by {value / goal:.2f} ×"


def _spread(values: list[float], base: float) -> str:
    return f"{min(values) / base:.3f} ({max(values) / base:.3f})"


def _time() -> str:
    out = [
        "## Time of the counting, as a ratio to the bare pass on meta",
        "",
        TIME,
        "",
        "| what | " + " | ".join(SUBJECTS[name]().name for name in TIMED) + " | goal | |",
        "|---|" + "--:|" * len(TIMED) + "--:|---|",
    ]
    times = {name: _clock("pass", name, str(rounds)) for name, rounds in TIMED.items()}
    bare = {name: min(found["bare"]) for name, found in times.items()}
    out.append("| bare pass | " + " | ".join(f"{bare[name]:.2f} s" for name in TIMED) + " | | |")
    for what, key, goal in (
        ("FlopCounterMode (FLOPs only)", "flop_counter", None),
        ("**torchstone**, every layer run", "full", FULL_GOAL),
        ("**torchstone**, equal layers replayed", "replayed", REPLAYED_GOAL),
    ):
        cells = " | ".join(_spread(times[name][key], bare[name]) for name in TIMED)
        worst = max(min(times[name][key]) / bare[name] for name in TIMED)
        goals = f"≤ {goal} | {_met(worst, goal)}" if goal else " | "
        out.append(f"| {what} | {cells} | {goals} |")
    return "\n".join([*out, ""])


def _step() -> str:
    runs = [_clock("step", "deepseek_v3") for _ in range(5)]
    runs.sort(key=lambda item: item["build"] + item["count"])
    best = runs[0]
    whole = best["build"] + best["count"]
    spread = ", ".join(f"{item['build'] + item['count']:.2f} s" for item in runs)
    peak = max(item["peak_mb"] for item in runs)
    said = (
        f"`measure_cost(model, inputs, train=True)`: {best['params']:,} parameters, "
        f"{best['flops']:.4g} FLOPs, {best['peak_memory_bytes'] / 2**40:.2f} TiB at the peak."
    )
    return "\n".join([
        "## DeepSeek-V3: what a training step with AdamW costs, from a fresh process",
        "",
        f"{said} {STEP.format(all=spread)}",
        "",
        "| what | figure | goal | |",
        "|---|--:|--:|---|",
        f"| building the model on meta | {best['build']:.2f} s | | |",
        f"| counting and the report | {best['count']:.2f} s | | |",
        f"| together | {whole:.2f} s | < {SECONDS_GOAL:.0f} s | {_met(whole, SECONDS_GOAL)} |",
        f"| peak memory | {peak:.0f} MB | < {MEMORY_GOAL_MB} MB | {_met(peak, MEMORY_GOAL_MB)} |",
        "",
    ])  # fmt: skip


def _memory() -> str:
    out = [
        "## Peak memory of a training step beside torch's MemTracker",
        "",
        MEMORY,
        "",
        f"| {' | '.join(MEMORY_COLUMNS)} |",
        "|---|--:|--:|--:|---|--:|--:|--:|",
    ]
    for name, rounds in TRACKED.items():
        found = _clock("memory", name, str(rounds))
        peaks = found["peaks"]
        least = {key: min(values) for key, values in found["seconds"].items()}
        times = " | ".join(
            f"{least[key] / least['bare']:.2f} ×" for key in ("tracker", "full", "replayed")
        )
        equal = peaks["tracker"] == peaks["full"] == peaks["replayed"]
        out.append(
            f"| {SUBJECTS[name]().name} | {peaks['tracker']:,} | {peaks['full']:,} | "
            f"{peaks['replayed']:,} | {'met' if equal else '**missed**'} | {times} |"
        )
    return "\n".join([*out, ""])


if __name__ == "__main__":
    print(run())
