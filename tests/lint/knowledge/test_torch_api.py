"""What the rules say about torch's names is true of the installed torch."""

from __future__ import annotations

import importlib
import inspect
import warnings

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from torchstone.lint.knowledge.torch_api import DEPRECATED, PRIVATE, REMOVED, Symbol

INSTALLED = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def find(name: str) -> object:
    """What a full name stands for; raises when it stands for nothing."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


def call(symbol: Symbol) -> None:
    matrix = torch.eye(2)
    find(symbol.name)(*(matrix, matrix) if symbol.name.endswith(("solve", "lstsq")) else (matrix,))  # type: ignore[operator]


@pytest.mark.parametrize("symbol", REMOVED.values(), ids=lambda symbol: symbol.name)
def test_removed_is_absent_or_only_raises(symbol: Symbol) -> None:
    assert symbol.removed is not None
    assert symbol.since <= symbol.removed <= INSTALLED
    try:
        find(symbol.name)
    except AttributeError:
        return
    with pytest.raises(RuntimeError, match="removed"):
        call(symbol)


@pytest.mark.parametrize(
    "symbol", [*DEPRECATED.values(), *PRIVATE.values()], ids=lambda symbol: symbol.name
)
def test_deprecated_and_private_names_still_exist(symbol: Symbol) -> None:
    assert symbol.removed is None
    assert symbol.since <= INSTALLED
    find(symbol.name)


@pytest.mark.parametrize(
    "symbol",
    [*REMOVED.values(), *DEPRECATED.values(), *PRIVATE.values()],
    ids=lambda symbol: symbol.name,
)
def test_what_to_use_instead_exists(symbol: Symbol) -> None:
    assert symbol.advice.en
    assert symbol.advice.zh
    assert symbol.instead or not symbol.drop_in
    if symbol.instead:
        find(symbol.instead)


def test_no_name_is_in_two_tables() -> None:
    assert not REMOVED.keys() & DEPRECATED.keys()
    assert not DEPRECATED.keys() & PRIVATE.keys()


def test_range_is_floating_and_keeps_its_end() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = torch.range(0, 10, 3)
    assert torch.equal(old, torch.arange(0, 11, 3, dtype=torch.get_default_dtype()))


def test_norm_equals_vector_norm_for_numbers() -> None:
    x = torch.randn(3, 4, 5)
    for arguments in ({}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}):
        assert torch.equal(torch.norm(x, **arguments), torch.linalg.vector_norm(x, **arguments))
    assert torch.allclose(torch.norm(x, p=1, dim=1), torch.linalg.vector_norm(x, ord=1, dim=1))


def test_factorizations_equal_their_successors() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(3, 3)
    positive = matrix @ matrix.mT + torch.eye(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert all(map(torch.equal, torch.qr(matrix), torch.linalg.qr(matrix)))
        assert all(map(torch.equal, torch.lu(matrix), torch.linalg.lu_factor(matrix)))
        upper = torch.cholesky(positive, upper=True)
        assert torch.allclose(upper, torch.linalg.cholesky(positive).mH)
        chained = torch.chain_matmul(matrix, positive, matrix)
    assert torch.allclose(chained, torch.linalg.multi_dot([matrix, positive, matrix]))


def test_load_and_checkpoint_defaults_are_as_the_pages_say() -> None:
    load = inspect.signature(torch.load).parameters
    assert load["weights_only"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "weights_only=True" in (torch.load.__doc__ or "")
    from_url = inspect.signature(torch.hub.load_state_dict_from_url).parameters
    assert from_url["weights_only"].default is False
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(torch.relu, torch.ones(2, requires_grad=True))
