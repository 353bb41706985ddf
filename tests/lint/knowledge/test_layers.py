"""What the lists say of torch's classes is what the installed torch does."""

from __future__ import annotations

import inspect

import pytest
import torch

from torchstone.lint.knowledge.layers import DROPOUTS, LOSSES, OPTIMIZERS, WITH_WEIGHTS
from torchstone.lint.rules.ungated_dropout import _NAMES

_ARGUMENTS: tuple[tuple[object, ...], ...] = ((), (4,), (4, 4), (4, 4, 3), (2, 4))


pytestmark = pytest.mark.filterwarnings("ignore")


def made(name: str) -> torch.nn.Module | None:
    for arguments in _ARGUMENTS:
        try:
            module: torch.nn.Module = getattr(torch.nn, name)(*arguments)
        except Exception:  # the next set of arguments may fit
            continue
        return module
    return None


@pytest.mark.parametrize("name", sorted(WITH_WEIGHTS))
def test_classes_with_weights_have_them(name: str) -> None:
    module = made(name)
    assert hasattr(torch.nn, name)
    assert module is None or list(module.parameters()) or list(module.buffers())


def test_no_class_with_weights_is_missing() -> None:
    found = {
        name
        for name, kind in vars(torch.nn).items()
        if inspect.isclass(kind) and issubclass(kind, torch.nn.Module)
        if name not in LOSSES and (module := made(name)) is not None and list(module.parameters())
    }
    # a loss with a weight of its own, and lazy norms whose weights are off by default
    norms = {f"LazyInstanceNorm{n}d" for n in (1, 2, 3)}
    assert found - WITH_WEIGHTS <= {"LinearCrossEntropyLoss"} | norms


@pytest.mark.parametrize("name", sorted(DROPOUTS | LOSSES))
def test_other_classes_exist(name: str) -> None:
    assert inspect.isclass(getattr(torch.nn, name))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_parameters_first(name: str) -> None:
    kind = getattr(torch.optim, name)
    assert next(iter(inspect.signature(kind).parameters)) == "params"


@pytest.mark.parametrize("name", sorted(_NAMES))
def test_functional_dropout_drops_by_default(name: str) -> None:
    assert (
        inspect.signature(getattr(torch.nn.functional, name)).parameters["training"].default is True
    )


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_the_alpha_forms_do_not(name: str) -> None:
    assert (
        inspect.signature(getattr(torch.nn.functional, name)).parameters["training"].default
        is False
    )
