"""The corpus of the benchmark: every kernel says what it is, and a few are judged here."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from torchstone.kernels.candidate import IMPLEMENTATIONS
from torchstone.kernels.problem import shipped_problems
from torchstone.kernels.sessions.workshop import Workshop

ROOT = Path(__file__).parent.parent.parent


def score() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "kernel_score", ROOT / "benchmarks/kernels/score.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


SCORE = score()
ENTRIES = SCORE.entries()
RIGHT = ("right", "blind_right", "modules/right", "own_size/right")
QUICK = (
    "right/rms_norm_numpy", "right/swiglu_c", "right/mla_absorbed_torch",
    "blind/matmul_transposed_numpy_square_guess", "blind/linear_gelu_torch_packed_once",
    "blind_3/group_norm_c_reciprocal_channel", "blind_3/matmul_c_strassen_even",
    "blind_4/relu_c_peeled_tail", "blind_4/softmax_c_cycle_counter",
    "blind_4/variance_torch_grad_mode", "wrong/c_one_too_far", "wrong/cached_output", "wrong/frame_reading", "wrong/flattened",
    "wrong/input_used_as_scratch", "own_size/wrong/matmul_c_zero_rows", "own_size/wrong/relu_triton_capped_grid",
)  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_kernel_says_what_it_is(entry: object) -> None:
    problem = entry.problem  # type: ignore[attr-defined]
    assert problem in shipped_problems() or Path(problem).is_file()
    assert entry.implementation in IMPLEMENTATIONS  # type: ignore[attr-defined]
    assert entry.set in RIGHT or entry.origin  # type: ignore[attr-defined]
    compile(entry.path.read_text("utf-8"), entry.name, "exec")  # type: ignore[attr-defined]


def test_the_corpus_is_large_enough() -> None:
    sets = Counter(entry.set for entry in ENTRIES)
    assert sets["right"] >= 40
    assert sets["wrong"] >= 27
    # written without sight of the gates: nobody adds to them or takes away
    assert (sets["held_out"], sets["blind"], sets["blind_right"]) == (28, 30, 12)
    assert (sets["blind_3"], sets["blind_4"], sets["blind_5"]) == (13, 14, 14)
    assert sets["modules/right"] >= 60
    assert sets["modules/wrong"] >= 25
    for name in ("right", "wrong"):
        kinds = Counter(entry.implementation for entry in ENTRIES if entry.set == name)
        assert all(kinds[kind] >= 5 for kind in ("triton", "numba", "c"))
        assert kinds["torch"] + kinds["numpy"] >= 5
    mechanisms = [entry.mechanism for entry in ENTRIES if entry.set not in RIGHT]
    assert len(set(mechanisms)) == len(mechanisms)


@pytest.mark.parametrize("name", QUICK)
def test_a_few_are_judged_rightly(name: str, workshop: Workshop) -> None:
    (entry,) = SCORE.entries([name])
    found = SCORE.score(entry, workshop)
    assert found.good, found.log or "accepted"
