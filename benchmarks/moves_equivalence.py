"""Compares every entry of the catalogue with its original on random calls; JSON lines.

python benchmarks/moves_equivalence.py [CALLS] [PREFIX]   run by bench_moves.py with cv2 4.x and 5.x
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np
import torch

from torchstone.dataflow.migration import UniversalWrapper, catalogue
from torchstone.dataflow.migration.contexts import Placement
from torchstone.dataflow.migration.patching.injector import resolve_object_path
from torchstone.dataflow.migration.processors import Transfer
from torchstone.dataflow.migration.proof.comparison import difference, largest_error
from torchstone.dataflow.migration.specification import OpSpec, Refusal
from torchstone.dataflow.migration.wrapper import Migration
from torchstone.dataflow.plan import plan_from_data

DRAWS = 150
"""A case that is rare among an entry's samples may need this many times the calls."""


@dataclass
class Row:
    """One case of one entry."""

    function: str
    case: str
    exact: bool
    calls: int = 0
    equal: int = 0
    largest: float = 0.0
    wrong: str = ""


def compared(spec: OpSpec, calls: int) -> list[Row]:
    holder, name = resolve_object_path(spec.name)
    original = getattr(holder, name)
    migration = Migration(Placement(plan_from_data({"context_device_map": {}})), {})
    wrapper = UniversalWrapper(original, spec.name, spec, migration)
    rng = np.random.default_rng(7)  # other numbers than those of the tests and of the probes
    rows: dict[str, Row] = {}
    for _ in range(calls * DRAWS):
        made = spec.sample(rng)
        bound = spec.bind(made.args, made.kwargs)
        case = spec.judge(bound)
        if isinstance(case, Refusal):
            continue
        row = rows.setdefault(case.name, Row(spec.name, case.name, case.exact))
        if row.calls >= calls:
            if min(item.calls for item in rows.values()) >= calls:
                break
            continue
        _compare(row, case, original(*made.args, **made.kwargs), wrapper, bound)
    return list(rows.values())


def _compare(row: Row, case: Any, expected: Any, wrapper: UniversalWrapper, bound: Any) -> None:
    got = wrapper.compute(bound, Transfer(torch.device("cpu")))
    row.calls += 1
    wrong = difference(expected, got, case)
    row.equal += not wrong
    row.wrong = row.wrong or wrong
    row.largest = max(row.largest, largest_error(expected, got))


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    calls = int(words[0]) if words else 500
    prefix = words[1] if len(words) > 1 else ""
    print(json.dumps({"cv2": cv2.__version__}))
    for name, spec in catalogue().items():
        if name.startswith(prefix) and importlib.util.find_spec(name.partition(".")[0]):
            for row in compared(spec, calls):
                print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
