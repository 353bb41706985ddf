"""Functions get the code of their rewritten source, and their own code back.

A file is compiled as it stands and as rewritten; the two trees of code objects have one shape, so
that each function of the program, wherever it lives, finds its counterpart.
"""

from __future__ import annotations

import ast
import ctypes
import functools
import gc
import inspect
import itertools
import linecache
import operator
import sys
import time
import tokenize
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from torchstone.dataflow.tracing.hooks.common import Hook
from torchstone.dataflow.tracing.hooks.operators import make_hook, plain_operation
from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.rewrite import MARK, SLICE, Rewriter
from torchstone.dataflow.tracing.sites import FunctionSites
from torchstone.observe.where import PROGRAM

_TRANSPARENT: dict[str, tuple[str, ...]] = {
    "torch/utils/data/_utils/fetch.py": ("self.dataset", "self.collate_fn"),
    "torch/utils/data/_utils/worker.py": ("fetcher.fetch", "data_queue.put"),
    "torch/utils/data/dataset.py": ("self.dataset", "self.datasets"),
    "torchvision/transforms/transforms.py": ("t",),
    "torchvision/transforms/v2/_container.py": ("transform",),
}
"""Library files that only pass the user's data on, and what of them belongs to the pipeline: what
they call or index by these names."""
_LARGEST = 4 * 2**20  # bytes of a source file; generated tables are larger


@dataclass(slots=True)
class RewrittenFile:
    """One source file, both ways."""

    plain: CodeType
    recording: CodeType
    pairs: dict[CodeType, CodeType] = field(default_factory=dict)
    """Code as it stands → code that records."""


@dataclass(slots=True)
class Instrumentation:
    """What was changed, and how it is taken back."""

    recorder: Recorder
    files: dict[str, RewrittenFile | None] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """File → why it could not be rewritten."""
    originals: dict[int, tuple[CodeType, CodeType]] = field(default_factory=dict)
    """By its id: code that records, and the code that stood there. (Equal code of two files is
    one key in a mapping by value.)"""
    owners: dict[FunctionSites, CodeType] = field(default_factory=dict)
    changed: dict[int, list[weakref.ref[FunctionType]]] = field(default_factory=dict)
    """By the id of the recording code: the functions that have it."""
    hooks: dict[int, tuple[Hook, Hook | None]] = field(default_factory=dict)
    """By the number of their site: the hook, and what stands in its place when it is taken off."""
    shed_count: int = 0

    # ---- files -------------------------------------------------------------------------------

    def file(self, name: str, source: str | None = None) -> RewrittenFile | None:
        """The file, rewritten once; None where there is no source or it cannot be compiled."""
        if name not in self.files:
            text = source if source is not None else source_of(name)
            try:
                self.files[name] = self._rewrite(name, text) if text else None
                if not text:
                    self.skipped[name] = "no source"
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.files[name] = None
                self.skipped[name] = f"{type(error).__name__}: {error}"
        return self.files[name]

    def _rewrite(self, name: str, text: str) -> RewrittenFile:
        plain, marked, rewriter = rewritten(name, text)
        made = RewrittenFile(plain, plain)
        made.recording = self._connect(plain, marked, rewriter, made)
        return made

    def block(self, name: str, tree: ast.Module, *, as_function: bool) -> CodeType:
        """Statements of a running frame, with hooks; in a function that stands for them, or bare."""
        rewriter = Rewriter(name, block=as_function)
        tree.body = rewriter.statements(tree.body)
        marked = _compiled(ast.fix_missing_locations(tree), name)
        return self._connect(marked, marked, rewriter, RewrittenFile(marked, marked))

    def _connect(
        self, plain: CodeType, marked: CodeType, rewriter: Rewriter, file: RewrittenFile
    ) -> CodeType:
        """The marks of one code object become hooks; the same for the code inside it."""
        owner = FunctionSites(plain.co_qualname, plain.co_filename)
        inner = iter([item for item in plain.co_consts if isinstance(item, CodeType)])
        constants: list[Any] = []
        for item in marked.co_consts:
            if isinstance(item, CodeType):
                twin = next(inner)
                if twin.co_name != item.co_name:
                    raise ValueError(f"{item.co_name} has no counterpart")
                constants.append(self._connect(twin, item, rewriter, file))
            else:
                constants.append(self._hook(item, owner, rewriter))
        code = marked.replace(co_consts=tuple(constants))
        file.pairs[plain] = code
        self._pair(code, plain)
        self.owners[owner] = code
        return code

    def _pair(self, recording: CodeType, original: CodeType) -> None:
        self.originals[id(recording)] = (recording, original)

    def _hook(self, item: Any, owner: FunctionSites, rewriter: Rewriter) -> Any:
        if not isinstance(item, str):
            return item
        if item == SLICE:
            return slice
        if not item.startswith(MARK):
            return item
        return self._made_hook(int(item[len(MARK) :]), owner, rewriter)

    def _made_hook(self, number: int, owner: FunctionSites, rewriter: Rewriter) -> Hook:
        site = rewriter.sites[number]
        before = len(self.recorder.sites)
        made = make_hook(site, owner, self.recorder, self.shed, self.calm)
        # an item has two numbers: as an operator, and as a call of `__getitem__`
        plain = None if number in rewriter.doubled else plain_operation(site)
        self.hooks |= dict.fromkeys(range(before, len(self.recorder.sites)), (made, plain))
        return made

    def calm(self, number: int, rounds: int) -> None:
        """A site whose calls are so short that hooks would take most of the time does without, in
        running frames too: the constant that is called there becomes None, which leads to the source
        as it was, or the operation itself where that does not stand beside it."""
        if number in self.recorder.hot:
            return
        self.recorder.hot[number] = rounds
        hook, plain = self.hooks[number]
        for code, _ in list(self.originals.values()):
            _replace_constant(code, hook, plain)

    # ---- functions ---------------------------------------------------------------------------

    def instrument(self, functions: Iterable[FunctionType]) -> None:
        for function in functions:
            code = function.__code__
            if id(code) in self.originals:
                continue
            file = self.file(code.co_filename)
            new = _counterpart(code, file) if file else None
            if new is not None:
                self._pair(new, code)
                function.__code__ = new
                self.changed.setdefault(id(new), []).append(weakref.ref(function))

    def shed(self, owner: FunctionSites) -> None:
        """A function that met no data gets its own code back; running frames end as they are."""
        owner.quiet = -(1 << 62)
        self.shed_count += 1
        code = self.owners[owner]
        original = self.originals[id(code)][1]
        if code.co_flags & inspect.CO_NESTED:  # made anew each time: nobody keeps a list of them
            found = functions_with({id(code)})
            self._forget_inside(code, original)
        else:
            known = self.changed.pop(id(code), ())
            found = [item for reference in known if (item := reference()) is not None]
        for function in found:
            if function.__code__ is code:
                function.__code__ = original

    def _forget_inside(self, code: CodeType, original: CodeType) -> None:
        """Functions that make this function when they run make it without hooks from now on."""
        for outer in functions_with(self.originals.keys()):
            replaced = _with_constant(outer.__code__, code, original)
            if replaced is not None:
                self._pair(replaced, self.originals[id(outer.__code__)][1])
                outer.__code__ = replaced

    def restore(self) -> None:
        """Every function has the code that it had."""
        for function in functions_with(self.originals.keys()):
            function.__code__ = self.originals[id(function.__code__)][1]
        self.changed.clear()


def _replace_constant(code: CodeType, old: Hook, new: Hook | None) -> None:
    """In the tuple itself, which running frames read: of code that this module made, and that
    nobody else holds. The old constant is kept alive by its owner."""
    constants = code.co_consts
    for place, item in enumerate(constants):
        if item is old:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(new))
            address = id(constants) + tuple.__basicsize__ + place * ctypes.sizeof(ctypes.c_void_p)
            ctypes.py_object.from_address(address).value = new  # type: ignore[assignment]


@functools.lru_cache(maxsize=256)
def rewritten(name: str, text: str) -> tuple[CodeType, CodeType, Rewriter]:
    """A file as it stands, with marks, and their sites. Kept: a program is traced again and again in a
    notebook, and nothing of this depends on the trace."""
    rewriter = Rewriter(name, only=transparent_names(name))
    tree = ast.parse(text, name)
    plain = compile(tree, name, "exec", dont_inherit=True)
    tree.body = rewriter.statements(tree.body)
    return plain, _compiled(ast.fix_missing_locations(tree), name), rewriter


def _compiled(tree: ast.Module, name: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "'str' object is not callable"
        return compile(tree, name, "exec", dont_inherit=True)


def user_functions(is_user_file: Callable[[str], bool]) -> Iterator[FunctionType]:
    """Every function of the user's that exists, wherever it is kept."""
    wanted: dict[str, bool] = {}  # a process has 70,000 functions of 3,000 files
    for item in _functions():
        name = item.__code__.co_filename
        if name not in wanted:
            wanted[name] = is_user_file(name) or bool(transparent_names(name))
        if wanted[name]:
            yield item


def functions_with(codes: AbstractSet[int]) -> list[FunctionType]:
    """Functions whose code is one of these, by id."""
    return [item for item in _functions() if id(item.__code__) in codes]


def _functions() -> Iterator[FunctionType]:
    """All that exist, picked without a line of Python for each of a million objects.

    Other threads are kept waiting meanwhile: a tuple that one of them is just building is among the
    objects, and it cannot be finished while a second reference to it exists (`SystemError` there).
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_UNDISTURBED)
    try:
        time.sleep(0)  # threads that already wait with the usual interval have their turn before
        found = gc.get_objects()
        kept = list(
            itertools.compress(
                found, map(operator.is_, map(type, found), itertools.repeat(FunctionType))
            )
        )
        del found
    finally:
        sys.setswitchinterval(usual)
    return iter(kept)


_UNDISTURBED = 0.2
"""Seconds: ten times what picking takes, and no longer than a program may stand still."""


@functools.cache
def transparent_names(name: str) -> tuple[str, ...]:
    """Of a library file that passes data on; empty for any other."""
    path = name.replace("\\", "/")
    return next((names for end, names in _TRANSPARENT.items() if path.endswith(end)), ())


def is_user_file(name: str) -> bool:
    """Neither of the standard library nor of an installed package nor of Torchstone itself."""
    return bool(name) and PROGRAM.is_own(name)


def source_of(name: str) -> str:
    """The text of a file, a notebook cell or a line typed at a prompt; empty where there is none."""
    cached = linecache.cache.get(name)
    if cached is not None and len(cached) == 4 and not Path(name).exists():
        return "".join(cached[2])  # a notebook cell, a REPL input
    try:
        if Path(name).stat().st_size > _LARGEST:
            return ""
        with tokenize.open(name) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return "".join(linecache.getlines(name))


def _counterpart(code: CodeType, file: RewrittenFile) -> CodeType | None:
    """The recording code for a function that exists; None where the source is another one."""
    exact = file.pairs.get(code)
    if exact is not None:
        return exact
    for plain, recording in file.pairs.items():
        if (
            plain.co_qualname == code.co_qualname
            and plain.co_firstlineno == code.co_firstlineno
            and plain.co_freevars == code.co_freevars
            and plain.co_argcount == code.co_argcount
            and set(plain.co_names) <= set(code.co_names)  # a test runner may have added some
        ):
            return recording
    return None


def _with_constant(code: CodeType, old: CodeType, new: CodeType) -> CodeType | None:
    if not any(item is old for item in code.co_consts):
        return None
    constants = tuple(new if item is old else item for item in code.co_consts)
    return code.replace(co_consts=constants)
