"""The part of the policy that is about modules: which of their members a kernel may use, and how.

A module is more than its name says: `functools.singledispatch` evaluates annotations,
`operator.attrgetter` walks attributes, `torch.onnx` writes files. So members are allowed one by
one, and a module is never handed around, where it could be asked for the others.
"""

from __future__ import annotations

import ast
import string
import sys
from collections.abc import Iterator

from torchstone.kernels.policy.allowed import ALLOWED
from torchstone.kernels.policy.handed_on import handed_on_breaches, in_class_bodies
from torchstone.kernels.policy.syntax import Breach, breach, homes_of, path_of

_MEMBERS = {
    module: frozenset(names.split())
    for module, names in {
        "functools": "partial reduce lru_cache cache cached_property",
        "itertools": "accumulate batched chain combinations combinations_with_replacement count cycle "
        "islice pairwise permutations product repeat starmap takewhile dropwhile zip_longest",
        "operator": "add sub mul truediv floordiv mod neg pos matmul pow lt le eq ne ge gt and_ or_ "
        "xor not_ invert lshift rshift itemgetter index abs truth",
        "typing": "Any Optional Union List Tuple Dict Set Callable Sequence Iterable Iterator Mapping "
        "Literal Final ClassVar TypeVar Generic Annotated Type TYPE_CHECKING cast Self TypeAlias NamedTuple",
        "collections": "namedtuple OrderedDict defaultdict deque Counter abc",
        "collections.abc": "Callable Iterable Iterator Sequence Mapping Generator Hashable",
        "dataclasses": "dataclass field replace astuple asdict",
        "enum": "Enum IntEnum auto unique",
        "numbers": "Number Real Integral",
    }.items()
}
_KNOWN = _MEMBERS | ALLOWED
_PACKAGES = frozenset({"torch", "numpy", "np", "triton", "numba", "scipy", "mindspore", "swft"})
_MODULES = _PACKAGES | sys.stdlib_module_names
_SUBMODULES = frozenset(
    {"torch.nn", "torch.nn.functional", "torch.nn.init", "torch.fft", "torch.linalg", "torch.special",
     "torch.autograd", "numpy.linalg", "numpy.fft", "triton.language", "numba.cuda", "scipy.special",
     "scipy.linalg", "triton.language.extra.libdevice", "numba.types", *_MEMBERS, *ALLOWED}
)  # fmt: skip


_OPEN = frozenset({"triton.language.extra.libdevice", "numba.cuda.libdevice"})
"""Hundreds of functions of numbers each: all of them may be used, and nothing behind one of them."""


def member_breaches(tree: ast.Module) -> Iterator[Breach]:
    """Where a member that is not allowed is used, or a module is handed on as a value."""
    homes = homes_of(tree)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    renamed = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets)
    }
    # a member of a class is reached through objects, where no name tells what it is
    renamed -= {id(item.value) for item in in_class_bodies(tree) if isinstance(item, ast.Assign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from _imported(node)
        elif isinstance(node, ast.Import):
            for name in [item.name for item in node.names]:
                if unknown := _first_unknown(name):
                    yield _not_allowed(node, unknown)
        elif isinstance(node, ast.Attribute):
            path = path_of(node, homes)
            yield from _used(node, path)
            if path in _SUBMODULES and id(node) not in inner | renamed:
                yield breach(node, f"hands the module {path} on", f"把模块 {path} 当作值传递")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            path = homes.get(node.id, "")
            if path in _PACKAGES | _SUBMODULES and id(node) not in inner | renamed:
                yield breach(node, f"hands the module {path} on", f"把模块 {path} 当作值传递")
    yield from _format_breaches(tree)
    yield from handed_on_breaches(tree, _PACKAGES | _SUBMODULES | sys.stdlib_module_names)


def _imported(node: ast.ImportFrom) -> Iterator[Breach]:
    base = node.module or ""
    for item in node.names:
        if item.name != "*" and (unknown := _first_unknown(f"{base}.{item.name}")):
            yield _not_allowed(node, unknown)


def _used(node: ast.Attribute, path: str) -> Iterator[Breach]:
    """Members by their path; and modules that are reached through another one."""
    base, _, last = path.rpartition(".")
    unknown = _first_unknown(path)
    if unknown and unknown == path:  # what is looked up in it in turn is told once
        yield _not_allowed(node, path)
    elif not unknown and last in _MODULES and path not in _SUBMODULES and _leads_on(base):
        yield breach(node, f"reaches the module {last} through {base}",
                     f"经由 {base} 访问模块 {last}")  # fmt: skip


def _first_unknown(path: str) -> str:
    """The part of a path that is no member that a kernel may use; empty where all are."""
    parts = path.split(".")
    for end in range(1, len(parts)):
        module, longer = ".".join(parts[:end]), ".".join(parts[: end + 1])
        if module in _OPEN:
            return ".".join(parts[: end + 2]) if len(parts) > end + 1 else ""
        if module not in _KNOWN:
            return ""
        if longer in _SUBMODULES:
            continue
        return "" if parts[end] in _KNOWN[module] or _is_dunder(parts[end]) else longer
    return ""


def _is_dunder(name: str) -> bool:
    """`torch.__version__` and its like have a rule of their own."""
    return name.startswith("__") and name.endswith("__")


def _leads_on(base: str) -> bool:
    """A package or one of its modules: their attributes may be the modules that they import."""
    return base in _PACKAGES | _SUBMODULES or base.startswith(("torch.nn.", "triton."))


def _not_allowed(node: ast.AST, path: str) -> Breach:
    module, _, _ = path.rpartition(".")
    return breach(node, f"uses {path}, which is not among the members of {module} that a kernel may use",
                  f"使用 {path}，它不在内核可用的 {module} 成员之列")  # fmt: skip


def _format_breaches(tree: ast.Module) -> Iterator[Breach]:
    """A format string may walk attributes and items: `"{0.__class__}".format(x)`."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr not in ("format", "format_map"):
            continue
        text = node.value.value if isinstance(node.value, ast.Constant) else None
        if not isinstance(text, str) or id(node) not in called or node.attr == "format_map":
            yield breach(node, "formats with a string that is not written here",
                         "使用并非写在此处的字符串进行格式化")  # fmt: skip
        elif _walks(text):
            yield breach(node, f"walks attributes in the format string {text[:40]!r}",
                         f"在格式字符串 {text[:40]!r} 中访问属性")  # fmt: skip


def _walks(text: str) -> bool:
    try:
        fields = [(name or "", spec or "") for _, name, spec, _ in string.Formatter().parse(text)]
    except ValueError:
        return True
    return any("." in name or "[" in name or "{" in spec for name, spec in fields)
