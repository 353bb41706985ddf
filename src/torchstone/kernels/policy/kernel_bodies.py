"""The part of the policy that is about kernels: defined, launched, and nothing else inside."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.kernels.policy.syntax import Breach, breach, homes_of, path_of, root_of


def _decorators(node: ast.FunctionDef) -> set[str]:
    found = set()
    for item in node.decorator_list:
        while isinstance(item, ast.Call):
            item = item.func
        found.add(item.attr if isinstance(item, ast.Attribute) else getattr(item, "id", ""))
    return found


_KERNEL_DECORATORS = {
    "triton": {"jit", "autotune", "heuristics"},
    "numba": {"njit", "jit", "vectorize", "guvectorize", "stencil", "cfunc"},
}


def kernel_names(tree: ast.Module, implementation: str) -> set[str]:
    """Functions that are kernels of this implementation."""
    wanted = _KERNEL_DECORATORS.get(implementation, set())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _decorators(node) & wanted:
            found.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            at: ast.expr = node.value  # `kernel = njit(function)` and `njit(...)(function)`
            while isinstance(at, ast.Call):
                at = at.func
            if (at.attr if isinstance(at, ast.Attribute) else getattr(at, "id", "")) in wanted:
                found |= {item.id for item in node.targets if isinstance(item, ast.Name)}
    return found


def kernel_breaches(tree: ast.Module, implementation: str) -> Iterator[Breach]:
    """Where the implementation has kernels, one must be defined and launched."""
    if implementation == "c":
        called = any(
            isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            and node.value.id == "library"
            for node in ast.walk(tree)
        )  # fmt: skip
        if not called:
            yield Breach(0, Text("calls no function of `library`", "没有调用 `library` 的函数"))
        return
    if implementation not in _KERNEL_DECORATORS:
        return
    kernels = kernel_names(tree, implementation)
    if not kernels:
        yield Breach(
            0, Text(f"defines no {implementation} kernel", f"没有定义 {implementation} 内核")
        )
        return
    bodies = [node for node in ast.walk(tree)
              if isinstance(node, ast.FunctionDef) and node.name in kernels]  # fmt: skip
    inside = {id(part) for body in bodies for part in ast.walk(body)}
    used = {
        node.id for node in ast.walk(tree)
        if isinstance(node, ast.Name) and id(node) not in inside
    }  # fmt: skip
    yield from _bodies(tree, bodies, kernels, implementation)
    yield from _inspected(tree, kernels)
    if not kernels & used:
        yield Breach(0, Text("defines a kernel and never launches it", "定义了内核但从未启动"))


def _inspected(tree: ast.Module, kernels: set[str]) -> Iterator[Breach]:
    """A kernel is launched: what lies behind it could run Python instead, or be exchanged."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in kernels and node.attr not in _LAUNCHERS:
                name = f"{node.value.id}.{node.attr}"
                yield breach(node, f"uses {name} instead of launching the kernel",
                             f"使用 {name}，而不是启动内核")  # fmt: skip


_LAUNCHERS = frozenset({"forall", "reduce", "reduceat", "accumulate", "outer", "at"})
"""Ways to launch: a number of threads in CUDA, the methods of a ufunc."""
_INSIDE = frozenset("range min max abs int float bool len tuple isinstance print round pow sum "
                    "True False None".split())  # fmt: skip
_LANGUAGES = {
    "triton": ("triton.language", "triton"),
    "numba": ("numba", "math"),
}


def _bodies(
    tree: ast.Module, bodies: list[ast.FunctionDef], kernels: set[str], implementation: str
) -> Iterator[Breach]:
    """Inside a kernel that is only simulated, nothing but the language of kernels is used.

    An interpreter would run any Python there, which no device can.
    """
    homes = homes_of(tree)
    constants = _constants(tree)
    for body in bodies:
        if implementation == "numba" and "cuda" not in ast.unparse(body.decorator_list[0]):
            continue  # the compiler itself takes nothing else
        local = {arg.arg for arg in ast.walk(body.args) if isinstance(arg, ast.arg)}
        local |= {
            node.id for node in ast.walk(body)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }  # fmt: skip
        known = local | kernels | constants | _INSIDE
        for statement in body.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Attribute) and _scalar_type(path_of(node, homes)):
                    continue
                if not isinstance(node, ast.Name) or node.id in known:
                    continue
                path = homes.get(node.id, "")
                if path.startswith(_LANGUAGES[implementation]):
                    continue
                if path == "numpy" and _only_types(statement, node.id, homes):
                    continue
                yield breach(node, f"uses {node.id} inside a kernel", f"在内核中使用 {node.id}")


_SCALAR_TYPES = frozenset(
    f"numpy.{name}"
    for name in "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 "
    "uint32 uint64 bool_ inf nan pi e isnan isinf isfinite sqrt exp log floor ceil".split()
)


def _scalar_type(path: str) -> bool:
    return path in _SCALAR_TYPES


def _only_types(statement: ast.AST, name: str, homes: dict[str, str]) -> bool:
    """All that is used of numpy here are its scalar types and functions of one number."""
    return all(
        _scalar_type(path_of(node, homes))
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and root_of(node) == name
        and isinstance(node.value, ast.Name)
    )  # fmt: skip


def _constants(tree: ast.Module) -> set[str]:
    """Names at the top of the file that stand for a number or a type of the kernel language."""
    found = set()
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        plain = not any(
            isinstance(part, ast.Dict | ast.List | ast.Set | ast.Lambda | ast.ListComp)
            for part in ast.walk(node.value)
        )
        calls = [part for part in ast.walk(node.value) if isinstance(part, ast.Call)]
        language = all("constexpr" in ast.unparse(part.func) for part in calls)
        if plain and language:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {item.id for item in targets if isinstance(item, ast.Name)}
    return found


def kernels_alone(source: str, implementation: str) -> str:
    """The imports, constants and kernels of a candidate: nothing of it that runs on its own."""
    tree = ast.parse(source)
    constants = _constants(tree)
    wanted = _KERNEL_DECORATORS.get(implementation, set())
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None), *(item.name for item in node.names)]
            if "torchstone_kernel" not in names:
                kept.append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [item.id for item in targets if isinstance(item, ast.Name)]
            makes_kernel = isinstance(node.value, ast.Call) and _made_by(node.value) in wanted
            if names and (constants.issuperset(names) or makes_kernel):
                kept.append(node)
        elif isinstance(node, ast.FunctionDef) and _only_defined(node, wanted):
            kept.append(node)
    return ast.unparse(ast.Module(kept, tree.type_ignores))


def _made_by(call: ast.Call) -> str:
    at: ast.expr = call
    while isinstance(at, ast.Call):
        at = at.func
    return at.attr if isinstance(at, ast.Attribute) else getattr(at, "id", "")


def _only_defined(node: ast.FunctionDef, wanted: set[str]) -> bool:
    """Defining it runs nothing but the decorators of kernels."""
    defaults = [item for item in (*node.args.defaults, *node.args.kw_defaults) if item is not None]
    return _decorators(node) <= wanted and all(isinstance(item, ast.Constant) for item in defaults)
