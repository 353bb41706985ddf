"""Datasets whose samples are given as a specification: no file of theirs is needed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NoReturn

import torch
from torch.utils.data import Dataset, IterableDataset

from torchstone.core.text import Text
from torchstone.dryrun.data_spec import SampleField
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session

SAMPLES = 1000
"""Length of a dataset that cannot tell its own: no multiple of the usual batch sizes."""


_GIVEN = (Text("dataset", "数据集"), Text("samples as given by --data", "--data 给出的样本"))


def give_data(session: Session, fields: tuple[SampleField, ...]) -> None:
    """From now on every dataset class that the program defines or imports gives such samples."""
    original = Dataset.__init_subclass__

    def init_subclass(cls: Any, /, **options: Any) -> None:
        original(**options)
        if not cls.__module__.startswith("torch."):
            _give(session, cls, fields)

    put(Dataset, "__init_subclass__", classmethod(init_subclass))


def _give(session: Session, cls: Any, fields: tuple[SampleField, ...]) -> None:
    if "__init__" in vars(cls):
        cls.__init__ = _forgiving(session, cls.__init__)
    if issubclass(cls, IterableDataset):
        cls.__iter__ = lambda _: _samples(session, fields)
        return
    length = getattr(cls, "__len__", None)

    def item(dataset: Any, index: int) -> Any:
        size = len(dataset)
        if not -size <= index < size:
            raise IndexError(index)
        session.assume(*_GIVEN)
        return sample(fields, int(index))

    def count(dataset: Any) -> int:
        try:
            return (int(length(dataset)) if length is not None else 0) or SAMPLES
        except Exception:  # it counts files that are not there
            return SAMPLES

    cls.__getitem__, cls.__len__ = item, count
    if "__getitems__" in dir(cls):
        cls.__getitems__ = lambda dataset, indices: [dataset[index] for index in indices]


def _forgiving(session: Session, original: Any) -> Any:
    """A constructor that goes on without its files: what it reads is not asked for."""

    @functools.wraps(original)
    def init(dataset: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(dataset, *args, **kwargs)
        except (OSError, RuntimeError, ImportError) as error:
            _answer_missing(type(dataset))
            said = f"{type(error).__name__}: {str(error)[:80]}"
            session.assume(
                f"{type(dataset).__name__}()",
                Text(f"goes on without: {said}", f"略过错误继续：{said}"),
            )

    return init


def _answer_missing(cls: Any) -> None:
    """What a constructor without its files has not set is no error of the program."""
    if hasattr(cls, "__getattr__"):
        return

    def missing(dataset: Any, name: str) -> NoReturn:
        error = AttributeError(f"'{type(dataset).__name__}' object has no attribute '{name}'")
        error._dryrun_cause = "data"  # type: ignore[attr-defined]
        raise error

    cls.__getattr__ = missing


def _samples(session: Session, fields: tuple[SampleField, ...]) -> Iterator[Any]:
    session.assume(*_GIVEN)
    return (sample(fields, index) for index in range(SAMPLES))


def sample(fields: tuple[SampleField, ...], index: int) -> Any:
    """The sample of an index, always the same: a tensor, a tuple, or a dict of them."""
    generator = torch.Generator()
    generator.manual_seed(index)
    made = [_tensor(field, generator) for field in fields]
    if fields[0].name:
        return {field.name: value for field, value in zip(fields, made, strict=True)}
    return made[0] if len(made) == 1 else tuple(made)


def _tensor(field: SampleField, generator: torch.Generator) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, field.dtype)
    if dtype.is_floating_point:
        return torch.randn(field.shape, generator=generator).to(dtype)
    limit = 2 if dtype == torch.bool else field.limit
    return torch.randint(0, limit, field.shape, generator=generator).to(dtype)
