"""Puts made values in the place of code that reads data, when that code is compiled."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.machinery
import inspect
import os
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from torchstone.starting.cuts.forms import BATCH, ROWS, SAMPLES, Form, Leaf, make_value

_HERE = __name__
_GIVEN = 8
"""Values of a generator."""
_BATCHES = 32
"""Of a loader: more than the steps of any run here."""
_cuts: dict[tuple[str, str], Any] = {}


def put_cuts(cuts: Sequence[Any]) -> None:
    """Before the first line of the program. Each has `path`, `scope`, `is_dataset` and `leaves`."""
    if not cuts:
        return
    _cuts.update({(os.path.realpath(item.path), item.scope): item for item in cuts})
    loader: Any = importlib.machinery.SourceFileLoader
    real = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        path = self.get_filename(fullname)
        if not has_cuts(path):
            return real(self, fullname)
        return compile_with_cuts(self.get_data(path), path)

    loader.get_code = get_code
    if any(leaf.form is None for item in cuts for leaf in item.leaves):
        _watch_modules()


def has_cuts(path: str) -> bool:
    """Whether something of this file is cut out."""
    return any(file == os.path.realpath(path) for file, _ in _cuts)


def compile_with_cuts(source: str | bytes, path: str) -> CodeType:
    """The file with a decorator before what is cut out; lines stay what they are."""
    tree = ast.parse(source)
    real = os.path.realpath(path)
    for node in tree.body:
        _decorate(node, real)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _decorate(node: ast.stmt, path: str) -> None:
    if isinstance(node, ast.If | ast.Try | ast.With):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.stmt):
                _decorate(inner, path)
    if isinstance(node, ast.ClassDef | ast.FunctionDef) and (path, node.name) in _cuts:
        text = f"__import__({_HERE!r}, fromlist=['cut_out']).cut_out({path!r}, {node.name!r})"
        made = ast.parse(text, mode="eval").body
        for part in ast.walk(made):
            ast.copy_location(part, node)
        node.decorator_list.insert(0, made)


def cut_out(path: str, scope: str) -> Callable[[Any], Any]:
    """A decorator that puts made values in the place of a dataset or a function."""
    cut = _cuts[path, scope]
    return functools.partial(_dataset if cut.is_dataset else _function, cut)


def _function(cut: Any, real: Any) -> Any:
    @functools.wraps(real)
    def given(*_: Any, **__: Any) -> Any:
        return _value(cut, cut.leaves, 0, ROWS)

    @functools.wraps(real)
    def iterate(*_: Any, **__: Any) -> Any:
        for index in range(_GIVEN):
            yield _value(cut, cut.leaves, index, 0)

    return iterate if inspect.isgeneratorfunction(real) else given


def _dataset(cut: Any, real: Any) -> Any:
    begin = real.__init__
    inside = tuple(leaf for leaf in cut.leaves if not leaf.place[:1] or leaf.place[0][0] != ".")
    held = {leaf.place[0][1:]: leaf for leaf in cut.leaves if leaf not in inside}

    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        with contextlib.suppress(Exception):  # what it sets before it looks for its data is kept
            begin(self, *args, **kwargs)
        for name, leaf in held.items():
            self.__dict__[name] = _one(cut, leaf, 0, SAMPLES)

    def item(_: Any, index: Any) -> Any:
        if isinstance(index, int) and not -SAMPLES <= index < SAMPLES:
            raise IndexError(index)
        return _value(cut, inside, index if isinstance(index, int) else 0, 0)

    def iterate(_: Any) -> Any:
        for index in range(SAMPLES):
            yield _value(cut, inside, index, 0)

    def missing(_: Any, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _one(cut, Leaf((f".{name}",), name), 0, SAMPLES)

    real.__init__ = construct
    real.__getattr__ = missing
    if "__getitem__" in dir(real) and "__iter__" not in vars(real):
        real.__getitem__, real.__len__ = item, lambda _: SAMPLES
    else:
        real.__iter__ = iterate
    return real


def _value(cut: Any, leaves: Sequence[Leaf], index: int, rows: int, depth: int = 0) -> Any:
    """What is given, put together from its values."""
    if len(leaves) == 1 and len(leaves[0].place) == depth:
        return _one(cut, leaves[0], index, rows)
    if leaves[0].place[depth] == "@":
        return MadeLoader(functools.partial(_batch, cut, leaves, depth + 1))
    parts: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        parts.setdefault(leaf.place[depth], []).append(leaf)
    made = {step[1:]: _value(cut, inner, index, rows, depth + 1) for step, inner in parts.items()}
    sign = next(iter(parts))[0]
    if sign == "{":
        return made
    if sign == ".":
        return OpenNamespace(made, cut, leaves[0].place[:depth])
    return tuple(made.values()) if sign == "(" else list(made.values())


class OpenNamespace:
    """An object with the attributes that are known; asking for another makes it known."""

    def __init__(self, made: dict[str, Any], cut: Any, place: tuple[str, ...]) -> None:
        self.__dict__.update(made, _cut=cut, _place=place)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        undecided: Any = importlib.import_module("torchstone.starting.cuts.undecided")
        cut = self._cut
        raise undecided.UndecidedError(
            undecided.Decided(cut.path, cut.scope, self._place, name, None, (f".{name}",))
        )


class MadeLoader:
    """Batches in the place of a loader."""

    def __init__(self, batch: Callable[[int], Any]) -> None:
        self._batch = batch
        self.batch_size = BATCH
        self.num_workers = 0
        self.dataset = range(BATCH * _BATCHES)
        self.sampler = None

    def __len__(self) -> int:
        return _BATCHES

    def __iter__(self) -> Any:
        return (self._batch(index) for index in range(_BATCHES))


def _batch(cut: Any, leaves: Sequence[Leaf], depth: int, index: int) -> Any:
    """Samples of one batch, put together as a loader does."""
    collate: Any = importlib.import_module("torch.utils.data").default_collate
    first = BATCH * index
    return collate([_value(cut, leaves, first + row, 0, depth) for row in range(BATCH)])


def _one(cut: Any, leaf: Leaf, index: int, rows: int) -> Any:
    if leaf.form is not None:
        place = next((count for count, item in enumerate(cut.leaves) if item == leaf), 0)
        return make_value(leaf.form, index + SAMPLES * place)
    undecided: Any = importlib.import_module("torchstone.starting.cuts.undecided")
    origin = undecided.Origin(cut.path, cut.scope, leaf.place, leaf.name, rows)
    return undecided.Undecided(origin)


def _watch_modules() -> None:
    """While values are open: batches of them stay open, and the first module that gets one decides."""
    torch: Any = importlib.import_module("torch")
    undecided: Any = importlib.import_module("torchstone.starting.cuts.undecided")
    trials: Any = importlib.import_module("torchstone.starting.cuts.trials")
    collate: Any = importlib.import_module("torchstone.observe.compat.loaders")
    collate.default_collate_fn_map[undecided.Undecided] = lambda batch, **_: batch[0].batched(
        len(batch)
    )
    module = torch.nn.Module
    call = module.__call__

    def decide(self: Any, *args: Any, **kwargs: Any) -> Any:
        ones = undecided.open_values((*args, *kwargs.values()))
        if ones and (values := trials.values_for_module(self, args, kwargs, ones)) is not None:
            forms = [
                (one._origin, trials.base_form(value, one._moves, one._batch))
                for one, value in zip(ones, values, strict=True)
            ]
            known = [(it, form) for it, form in forms if form is not None]
            if known:
                raise undecided.UndecidedError(*(
                    undecided.Decided(it.path, it.scope, it.place, it.name, form) for it, form in known
                ))  # fmt: skip
        return call(self, *args, **kwargs)

    module.__call__ = decide
    load = module.load_state_dict

    def load_state_dict(self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state, undecided.Undecided):
            state.decide(Form("state"))
        return load(self, state, *args, **kwargs)

    module.load_state_dict = load_state_dict
    variable: Any = importlib.import_module("torch.autograd.variable").VariableMeta

    def wrap(cls: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, undecided.Undecided):
            return data
        return type.__call__(cls, data, *args, **kwargs)

    variable.__call__ = wrap
