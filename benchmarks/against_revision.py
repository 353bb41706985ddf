"""Overheads of the working tree against another revision, side by side in one run.

`against_revision.py REVISION` checks the revision out beside the tree and takes turns: a watched
step, a counting pass on meta, a real step that is counted, a comparison of precisions. Figures are CPU
time; each round asks both sides in a process of its own, and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = """
import json, logging, time, torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(0)
logging.getLogger("torchstone.watch").addHandler(logging.NullHandler())
logging.getLogger("torchstone.watch").propagate = False

def clock(act, times):
    start = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - start) / times

model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU()) for _ in range(8)])
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
x = torch.randn(64, 256)
def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
clock(step, 30)
bare = clock(step, 150)
from torchstone.watch import Watch
with Watch(model, optimizer, folder=False, budget=1.0) as watch:
    def watched():
        watch.step(step())
    clock(watched, 60)
    seen = clock(watched, 300)
from torchstone.cost import measure_cost
conv = nn.Sequential(*[nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(30)])
image = torch.randn(2, 16, 32, 32)
count = lambda: measure_cost(conv, image, train=True)
count()
counting = clock(count, 5)
from torchstone.cost import count_step
def counted():
    with count_step(model):
        step()
counted()
real = clock(counted, 20)
from torchstone.tensors import compare_precision
small = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
rows = torch.randn(16, 64)
def compared():
    compare_precision(small, rows, torch.float16, plan=False)
compared()
shadowed = clock(compared, 3)
print(json.dumps({"bare step": bare, "watched step": seen, "counting pass on meta": counting,
                  "counted real step": real, "compare_precision": shadowed}))
"""


def ask(source: Path) -> dict[str, float]:
    """Seconds of each figure with one tree."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"},
        cwd=tempfile.gettempdir(),
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(other), asked.revision], check=True)
        try:
            rounds = [(ask(other), ask(ROOT)) for _ in range(asked.rounds)]
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)
    for name in rounds[0][0]:
        then, now = ([pair[side][name] for pair in rounds] for side in (0, 1))
        ratios = sorted(b / a for a, b in zip(then, now, strict=True))
        print(
            f"{name}: {statistics.median(then) * 1e3:.3f} ms -> {statistics.median(now) * 1e3:.3f} ms, "
            f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )
    for side, words in ((0, asked.revision), (1, "the working tree")):
        shares = [pair[side]["watched step"] / pair[side]["bare step"] for pair in rounds]
        print(f"watched / bare with {words}: {statistics.median(shares):.3f}")


if __name__ == "__main__":
    main()
