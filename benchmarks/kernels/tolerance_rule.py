"""A rule like that of KernelBench's checker, written anew, on the same corpus: five draws of the problem's own inputs,
every output within 1e-2 absolute and relative of the reference's, in the same process.

python benchmarks/kernels/tolerance_rule.py            # all sets, Python kernels only
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).parent
TRIALS, TOLERANCE, SECONDS = 5, 1e-2, 120


def judge(path: str, problem: str) -> None:
    """Exit 0 when the rule accepts the kernel."""
    import torch

    reference = importlib.import_module(f"torchstone.kernels.problems.{problem}")
    scope: dict[str, object] = {"__name__": "candidate"}
    exec(compile(Path(path).read_text("utf-8"), path, "exec"), scope)
    for seed in range(TRIALS):
        torch.manual_seed(seed)
        inputs = reference.get_inputs()
        models = []
        for make in (reference.Model, scope["ModelNew"]):
            torch.manual_seed(seed)
            models.append(make(*reference.get_init_inputs()))  # type: ignore[operator]
        wanted, got = (torch.as_tensor(model(*inputs)) for model in models)  # numpy kernels too
        if wanted.shape != got.shape or not torch.allclose(got, wanted, TOLERANCE, TOLERANCE):
            sys.exit(1)


def main() -> None:
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(FOLDER.glob("*/*.py")):
        text = path.read_text("utf-8")
        facts = dict(re.findall(r"^# (\w+): (.+)$", text, re.M))
        if (
            facts.get("implementation") not in ("torch", "numpy")
            or path.parent.name == "__pycache__"
        ):
            continue
        kind = "right" if "right" in path.parent.name else "wrong"
        try:
            done = subprocess.run([sys.executable, __file__, str(path), facts["problem"]], timeout=SECONDS,
                                  capture_output=True, check=False)  # fmt: skip
            said = "accepted" if done.returncode == 0 else "refused"
        except subprocess.TimeoutExpired:
            said = "refused"
        found[kind, said] += 1
    for (kind, said), count in sorted(found.items()):
        print(f"{kind} kernels {said}: {count}")


if __name__ == "__main__":
    judge(*sys.argv[1:]) if sys.argv[1:] else main()
