"""Who calls a function, and in which region."""

from __future__ import annotations

import time

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions


def test_functions_that_all_call_each_other_are_answered_at_once() -> None:
    count = 14
    names = [f"f{number}" for number in range(count)]
    rows = ["import torch"]
    for name in names:
        rows.append(f"def {name}(model):")
        rows += [f"    {other}(model)" for other in names if other != name]
        rows += ["    for p in model.parameters():", "        p.mul_(0.9)"]
    source = "\n".join(rows) + "\n"
    options = CheckOptions(
        paths=("-",), select=("in-place-on-leaf",), no_cache=True, stdin_name="sample.py"
    )
    start = time.process_time()
    findings = check(options, stdin=source.encode()).findings
    assert len(findings) == count
    assert time.process_time() - start < 5
