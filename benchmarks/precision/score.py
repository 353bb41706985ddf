"""Faults named by their line, healthy models left alone, crashes.

python -m benchmarks.precision.score [--aside] [--faults 7] [--seed 0] [NAME ...]
"""

from __future__ import annotations

import argparse
import math
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from benchmarks.precision.architectures import ARCHITECTURES, Architecture, Batch
from benchmarks.precision.faults import Form, Site, draw_faults, load, rewrite
from torch import nn

from torchstone import compare_precision
from torchstone.tensors.compare.results.outcome import PrecisionReport

_FORMATS = (torch.bfloat16, torch.float16, torch.float32)
_WORSE = 10
"""A fault counts where it makes results this many times worse than the healthy model's …"""
_LEAST = {torch.bfloat16: 0.05, torch.float16: 0.02, torch.float32: 1e-4}
"""… and at least this bad: what a later layer normalises away harms nobody."""


@dataclass(frozen=True)
class Verdict:
    """What became of one fault."""

    outcome: str
    """`named`, `another line`, `not named`, `harmless` or `crash`."""
    about: str


def compare(model: nn.Module, batch: Batch, low: torch.dtype) -> PrecisionReport:
    return compare_precision(model, batch, low=low, simulate=low.itemsize <= 2, lang="en")


def judge_fault(site: Site, form: Form, folder: Path, seed: int) -> Verdict:
    """The healthy model and the faulty one, compared with the same seed."""
    architecture = site.architecture
    healthy = compare(*architecture.build(architecture.module, seed), form.low)
    path = folder / f"{architecture.name}_{site.lines.start}.py"
    module = load(architecture, rewrite(architecture, {site.index: form.template}), path)
    try:
        found = compare(*architecture.build(module, seed), form.low)
    except Exception:
        return Verdict("crash", traceback.format_exc(limit=-3))
    pairs = (
        (healthy.output_error, found.output_error),
        (healthy.gradient_error, found.gradient_error),
    )
    harmful = any(
        not math.isfinite(now) or now > max(_WORSE * before, _LEAST[form.low])
        for before, now in pairs
    )
    bad = found.first_bad
    sizes = " ".join(f"{100 * before:.3g}→{100 * now:.3g} %" for before, now in pairs)
    where = (
        f"{Path(bad.place.path).name}:{bad.place.line} {bad.operator} {bad.kind}" if bad else "–"
    )
    named = (
        bad is not None and Path(bad.place.path).name == path.name and bad.place.line in site.lines
    )
    if named:
        outcome = "named"
    elif not harmful:
        outcome = "harmless" if bad is None else "another line"
    else:
        outcome = "not named" if bad is None else "another line"
    return Verdict(outcome, f"{sizes}; named: {where}")


def judge_healthy(
    architecture: Architecture,
    formats: tuple[torch.dtype, ...] = _FORMATS,
    seeds: tuple[int, ...] = (0, 1),
) -> list[str]:
    """The seeds and types with which a healthy model is blamed."""
    accused = []
    for seed in seeds:
        for low in formats:
            model, batch = architecture.build(architecture.module, seed)
            bad = compare(model, batch, low).first_bad
            if bad is not None:
                accused.append(
                    f"{architecture.name} seed {seed} {low}: {bad.place} {bad.operator} {bad.kind}"
                )
    return accused


def score_architectures(
    aside: bool, faults: int, seed: int, names: Sequence[str] = ()
) -> Counter[str]:
    """How many faults had each outcome, and how many healthy models were accused; told as it goes."""
    counts: Counter[str] = Counter()
    chosen = [item for item in ARCHITECTURES if item.aside == aside]
    for architecture in chosen:
        if names and architecture.name not in names:
            continue
        accused = judge_healthy(architecture)
        counts["healthy"] += 2 * len(_FORMATS)
        counts["healthy accused"] += len(accused)
        print("\n".join(accused) or f"{architecture.name}: healthy ones left alone", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for site, form in draw_faults(architecture, Path(folder), faults, seed):
                verdict = judge_fault(site, form, Path(folder), seed)
                counts[verdict.outcome] += 1
                low = str(form.low).removeprefix("torch.")
                print(
                    f"  {site} {form.name} ({low}): {verdict.outcome} {verdict.about}", flush=True
                )
    return counts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--aside", action="store_true")
    parser.add_argument("--faults", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(dict(score_architectures(given.aside, given.faults, given.seed, given.names)))


if __name__ == "__main__":
    main()
