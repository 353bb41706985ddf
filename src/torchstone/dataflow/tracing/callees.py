"""What is called: its name, whether it is the user's own, and what it does to its arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

Label = Any
"""What stands for a callable: the function, or (class, name) of a method; never a bound method,
which would keep its array alive."""

_CONTAINER_TYPES = frozenset(
    "list dict set deque tuple str bytes frozenset OrderedDict defaultdict".split()
)
_PLUMBING_MODULES = (
    "queue", "threading", "concurrent.futures", "asyncio", "functools", "itertools", "copyreg",
    "multiprocessing", "collections", "contextlib", "weakref", "logging", "torch.multiprocessing",
)  # fmt: skip
"""They hand data on and make none."""
_PASS_THROUGH = frozenset(
    "asarray asanyarray ascontiguousarray asfortranarray array require atleast_1d atleast_2d "
    "atleast_3d squeeze ravel reshape astype to contiguous float double half cpu cuda detach type "
    "as_tensor view_as requires_grad_ broadcast_to nan_to_num real".split()
)
"""They may return the very object that they were given, unchanged."""
_WRITES_FIRST = frozenset(
    "copyto put place putmask fill_diagonal shuffle fill sort partition itemset at byteswap "
    "paste putpixel putdata putalpha alpha_composite put_along_axis".split()
)
"""They write to their first argument, or to the array whose method they are."""
_FRESH_ANYWAY = frozenset(("numpy.sort", "numpy.partition", "torch.sort", "torch.Tensor.sort"))
"""Functions of the same names that return a new array."""


_SHARING = frozenset(("torch.from_numpy", "torch.as_tensor"))
_BETWEEN_PROCESSES = ("multiprocessing", "torch.multiprocessing")
_NAMELESS = ("cv2",)
"""Modules whose functions do not say where they are from."""


@dataclass(frozen=True, slots=True)
class Callee:
    """One callable as the graph names it."""

    name: str
    module: str
    number: int = 0
    """Its place among all callees of a run."""
    user: bool = False
    """The user's own function."""
    is_object: bool = False
    """A class, or an object that can be called: what runs is its `__init__` or `__call__`."""
    plumbing: bool = False
    """It hands data on: containers, queues, executors."""
    sends: bool = False
    """`put` of a queue between processes."""
    writes_first: bool = False
    returns_input_unchanged: bool = False
    """When it returns one of its arguments, the argument is as it was."""
    traced: bool = True
    draws: bool = False
    """A method of PIL's ImageDraw: it writes to the image behind it."""
    shares: bool = False
    """The tensor that it makes lives in the array that it was given."""

    has_no_effects: bool = False
    """Its result says what it did."""
    ends_with: str = ""
    """The last part of its name."""


def label_of(func: Any) -> Label:
    cls = type(func)
    if cls is FunctionType:
        return func
    if cls is BuiltinFunctionType:
        owner = func.__self__
        if owner is None or type(owner) is ModuleType:
            return func
        return (owner if isinstance(owner, type) else type(owner), func.__name__)
    if cls is MethodType:
        function = func.__func__
        return function if type(function) is FunctionType else (type(func.__self__), func.__name__)
    if isinstance(func, type):
        return func
    owner = getattr(func, "__self__", None)
    if owner is not None and hasattr(func, "__name__"):
        return (type(owner), func.__name__)
    if cls.__name__ == "ufunc" or hasattr(func, "__name__"):
        return func
    if cls.__name__ == "partial":
        return label_of(func.func)
    return cls


class Callees:
    """Every callable met so far."""

    def __init__(
        self,
        is_user_file: Callable[[str], bool],
        should_trace: Callable[[str, str], bool],
    ) -> None:
        self._is_user_file = is_user_file
        self._should_trace = should_trace
        self.known: dict[Label, Callee] = {}
        self.listed: list[Callee] = []

    def of(self, func: Any) -> Callee:
        label = label_of(func)
        try:
            found = self.known.get(label)
        except TypeError:  # a callable that cannot be hashed
            return self._describe(type(func))
        if found is None:
            found = self.known[label] = self._describe(label)
        return found

    def _describe(self, label: Label) -> Callee:
        name, module, user = self._named(label)
        last = name.rpartition(".")[2]
        numeric = module.partition(".")[0] in ("numpy", "torch", "PIL", "random", "scipy")
        owner = label[0] if isinstance(label, tuple) else None
        writes = (
            last in _WRITES_FIRST and numeric and name not in _FRESH_ANYWAY
        ) or _ends_in_place(last, module)
        plumbing = not user and (_is_container(owner) or module.startswith(_PLUMBING_MODULES))
        draws = module == "PIL.ImageDraw" and last not in ("Draw", "textbbox", "textlength")
        sends = last == "put" and module.startswith(_BETWEEN_PROCESSES)
        traced = self._should_trace(last if not user else name, module)
        shares = name in _SHARING
        made = Callee(
            name=name,
            module=module,
            number=len(self.listed),
            user=user,
            is_object=isinstance(label, type),
            plumbing=plumbing,
            sends=sends,
            writes_first=writes,
            returns_input_unchanged=_keeps(module, last),
            traced=traced,
            draws=draws,
            shares=shares,
            has_no_effects=traced and not (writes or draws or sends or shares or plumbing),
            ends_with=last,
        )
        self.listed.append(made)
        return made

    def _named(self, label: Label) -> tuple[str, str, bool]:
        if isinstance(label, tuple):
            owner, name = label
            module = getattr(owner, "__module__", "") or ""
            if owner.__name__ == "RandomState":
                return f"numpy.random.{name}", "numpy.random", False
            return f"{_public(module, owner.__name__)}.{name}", module, False
        code = getattr(label, "__code__", None)
        module = getattr(label, "__module__", None) or _module_of(label)
        name = str(getattr(label, "__qualname__", "") or getattr(label, "__name__", label))
        head, _, last = name.rpartition(".")
        if head and hasattr(sys.modules.get(module), last) and code is None:
            name = last  # torch.add is a method of a hidden class, numpy.random.rand of an object
        if code is not None and self._is_user_file(code.co_filename):
            return name, module, True
        if isinstance(label, type):
            init = label.__dict__.get("__call__") or label.__dict__.get("__init__")
            if self._is_user_file(getattr(getattr(init, "__code__", None), "co_filename", "")):
                return name, module, True
        return _public(module, name), module, False


def _public(module: str, name: str) -> str:
    """The name under which a person knows it: `cv2.resize`, `numpy.ndarray.mean`."""
    if module in ("builtins", ""):
        return name
    head = name.partition(".")[0]
    parts = module.split(".")
    for end in range(1, len(parts)):
        home = ".".join(parts[:end])
        found = getattr(sys.modules.get(home), head, None)
        # PIL.Image, which holds the class Image, is a module of PIL
        if found is not None and not isinstance(found, ModuleType):
            return f"{home}.{name}"
    return ".".join((*(part for part in parts if not part.startswith("_")), name))


def _module_of(label: Label) -> str:
    cls = type(label)
    if cls.__name__ == "ufunc":
        return "numpy"
    owner = getattr(label, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__
    name = getattr(label, "__name__", "")
    for home in _NAMELESS:
        if name and getattr(sys.modules.get(home), name, None) is label:
            return home
    return cls.__module__ if cls is not BuiltinFunctionType else ""


def _is_container(owner: Any) -> bool:
    return isinstance(owner, type) and owner.__name__ in _CONTAINER_TYPES


def _ends_in_place(last: str, module: str) -> bool:
    top = module.partition(".")[0]
    return (
        top == "torch"
        and last.endswith("_")
        and not last.endswith("__")
        and last != "requires_grad_"
    )


def _keeps(module: str, last: str) -> bool:
    top = module.partition(".")[0]
    if top == "cv2":
        return False
    return top != "numpy" or last in _PASS_THROUGH
