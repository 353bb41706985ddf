"""Probes of the problem: would a kernel that does nothing of the work be accepted?"""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.reference.running import as_tensor, leaves_of
from torchstone.kernels.messages.to_referee import Probes
from torchstone.kernels.sessions.calls import POISONED

Guess = Callable[[Case, int], torch.Tensor | None]


def probe(cases: list[Case], allowed: Callable[[Case], float]) -> Probes:
    """For each trivial kernel: does it pass the problem's own inputs, and which families stop it."""
    first = cases[0]
    guesses: dict[str, Guess] = {
        "identity": _identity,
        "zeros": lambda case, i: torch.zeros_like(case.answers[i].reference),
        "constant": lambda case, i: _constant(first, case, i),
        "independent": lambda _, i: first.answers[i].reference,
    }
    found: dict[str, list[str]] = {}
    for name, guess in guesses.items():
        own = [case for case in cases if case.family == "own"]
        if not all(_passes(case, guess, allowed) for case in own):
            continue
        others: dict[str, list[Case]] = {}
        for case in cases:
            if case.family not in ("own", *POISONED):
                others.setdefault(case.family, []).append(case)
        found[name] = sorted(
            family
            for family, mine in others.items()
            if not all(_passes(case, guess, allowed) for case in mine)
        )
    return Probes(found)


def _passes(case: Case, guess: Guess, allowed: Callable[[Case], float]) -> bool:
    for i, answer in enumerate(case.answers):
        value = guess(case, i)
        if value is None or value.shape != answer.reference.shape:
            return False
        if not answer.reference.is_floating_point():
            if not bool(((value == answer.reference) | answer.open).all()):
                return False
            continue
        far = (value.double() - answer.exact).abs() > allowed(case) * answer.unit
        if bool(far.any()):
            return False
    return True


def _identity(case: Case, index: int) -> torch.Tensor | None:
    wanted = case.answers[index].reference
    for leaf in leaves_of(case.inputs):
        tensor = as_tensor(leaf)
        if tensor is not None and tensor.shape == wanted.shape and tensor.dtype == wanted.dtype:
            return tensor
    return None


def _constant(first: Case, case: Case, index: int) -> torch.Tensor:
    """One number everywhere, taken from the first answer."""
    wanted, known = case.answers[index].reference, first.answers[index].reference.reshape(-1)
    return torch.full_like(wanted, known[0].item()) if known.numel() else wanted
