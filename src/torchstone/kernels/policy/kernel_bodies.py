"""The part of the policy that is about kernels: defined, launched, and nothing else inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.kernels.policy.allowed import ALLOWED
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
    yield from _hidden_options(tree, implementation)
    if not kernels & used:
        yield Breach(0, Text("defines a kernel and never launches it", "定义了内核但从未启动"))


def _hidden_options(tree: ast.Module, implementation: str) -> Iterator[Breach]:
    """What makes a kernel is written where it is made: numba evaluates signatures that are text, and
    `jit(**options)` may run Python."""
    homes = homes_of(tree)
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    yield from _handed_on(tree, implementation, homes)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not _is_maker(node.func, implementation, homes):
            continue
        if any(item.arg is None for item in node.keywords):
            yield breach(node, "hides the options of a kernel behind **", "用 ** 隐藏内核的选项")
        given = [*node.args, *(item.value for item in node.keywords)]
        for part in (part for item in given for part in ast.walk(item)):
            yield from _signature_breaches(part, implementation, homes, functions)


def _is_maker(node: ast.expr, implementation: str, homes: dict[str, str]) -> bool:
    """What makes a kernel, under whatever name: `numba.njit`, or what a call of it gives."""
    while isinstance(node, ast.Call):
        node = node.func
    path = homes.get(node.id, "") if isinstance(node, ast.Name) else ""
    path = path_of(node, homes) if isinstance(node, ast.Attribute) else path
    home, _, last = path.rpartition(".")
    return home.startswith(implementation) and last in _KERNEL_DECORATORS[implementation]


def _handed_on(tree: ast.Module, implementation: str, homes: dict[str, str]) -> Iterator[Breach]:
    """A maker of kernels is called or stands above a function; as a value it could be given text."""
    if implementation != "numba":
        return
    used = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            used |= {id(item) for item in node.decorator_list}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in used:
            continue
        if isinstance(node.ctx, ast.Load) and _is_maker(node, implementation, homes):
            name = ast.unparse(node)
            yield breach(node, f"hands {name} on", f"把 {name} 当作值传递")


def _signature_breaches(
    part: ast.AST, implementation: str, homes: dict[str, str], functions: set[str]
) -> Iterator[Breach]:
    if implementation != "numba":
        return
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        words = set(re.findall(r"[A-Za-z_]\w*", part.value))
        if not _SIGNATURE.fullmatch(part.value) or not words <= _TYPE_NAMES:
            shown = part.value[:40]
            yield breach(part, f"gives a kernel the text {shown!r}, which is no signature of types",
                         f"给内核的文本 {shown!r} 不是类型签名")  # fmt: skip
    elif isinstance(part, ast.Name) and part.id not in functions and part.id not in homes:
        yield breach(part, f"gives a kernel {part.id}, which is not written there",
                     f"交给内核的 {part.id} 没有写在该处")  # fmt: skip
    elif isinstance(part, ast.JoinedStr | ast.BinOp | ast.Lambda):
        yield breach(
            part, "makes the options of a kernel by an expression", "用表达式生成内核的选项"
        )


_SIGNATURE = re.compile(r"[\w\s,:()\[\]>*.+-]*")
_TYPE_NAMES = ALLOWED["numba"] | frozenset(
    "Array Tuple UniTuple C A F parallel cpu cuda target a b c d e i j k l m n o p q r s t x y z numpy python "
    "workqueue omp tbb default fastmath nnan ninf nsz arcp contract afn reassoc".split()
)
"""Words of a signature or of a layout such as `(m,n),(n)->(m)`, and names of targets."""


def _inspected(tree: ast.Module, kernels: set[str]) -> Iterator[Breach]:
    """A kernel is launched: what lies behind it could run Python instead, or be exchanged."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in kernels and node.attr not in _LAUNCHERS:
                name = f"{node.value.id}.{node.attr}"
                yield breach(node, f"uses {name} instead of launching the kernel",
                             f"使用 {name}，而不是启动内核")  # fmt: skip


_LAUNCHERS = frozenset({"forall", "reduce", "reduceat", "accumulate", "outer", "at", "warmup"})
"""Ways to launch: a number of threads in CUDA, the methods of a ufunc, Triton's compiling before a launch."""
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
            yield from _library_calls(body, homes)
            continue  # the compiler itself takes nothing else
        local = {arg.arg for arg in ast.walk(body.args) if isinstance(arg, ast.arg)}
        local |= {
            node.id for node in ast.walk(body)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }  # fmt: skip
        known = local | kernels | constants | _INSIDE
        if implementation == "numba":
            yield from _beyond_cuda(body, homes)
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


_LIBRARY = ("numpy.dot", "numpy.vdot", "numpy.inner", "numpy.matmul", "numpy.linalg")
"""What numba hands to a library of linear algebra: a kernel that calls it is none of its author's."""


def _library_calls(body: ast.FunctionDef, homes: dict[str, str]) -> Iterator[Breach]:
    for node in (node for statement in body.body for node in ast.walk(statement)):
        named = isinstance(node, ast.Attribute) and (
            path_of(node, homes).startswith(_LIBRARY) or node.attr == "dot"
        )
        imported = isinstance(node, ast.Name) and homes.get(node.id, "").startswith(_LIBRARY)
        product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        if named or imported or product:
            yield breach(
                node,
                "calls a library for a matrix product inside a kernel",
                "在内核中调用库函数计算矩阵乘积",
            )


_OF_ARRAYS = frozenset("shape size ndim dtype strides itemsize x y z real imag".split())
"""What CUDA has of an array or of a place; the simulator would run every method of numpy."""
_NOT_ON_A_DEVICE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.List, ast.Dict, ast.Set,
                    ast.Lambda, ast.FunctionDef, ast.JoinedStr, ast.With, ast.Try)  # fmt: skip


def _beyond_cuda(body: ast.FunctionDef, homes: dict[str, str]) -> Iterator[Breach]:
    """What a simulated thread can do and a thread on a device cannot."""
    for statement in body.body:
        for node in ast.walk(statement):
            if isinstance(node, _NOT_ON_A_DEVICE):
                name = type(node).__name__
                yield breach(
                    node, f"uses a {name} inside a CUDA kernel", f"在 CUDA 内核中使用 {name}"
                )
            elif isinstance(node, ast.Attribute) and not path_of(node, homes):
                if node.attr not in _OF_ARRAYS:
                    yield breach(node, f"uses .{node.attr} inside a CUDA kernel",
                                 f"在 CUDA 内核中使用 .{node.attr}")  # fmt: skip


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
    found: set[str] = set()
    imported = homes_of(tree).keys()
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        plain = not any(
            isinstance(part, ast.Dict | ast.List | ast.Set | ast.Lambda | ast.ListComp)
            for part in ast.walk(node.value)
        )
        calls = [part for part in ast.walk(node.value) if isinstance(part, ast.Call)]
        language = all("constexpr" in ast.unparse(part.func) for part in calls)
        read = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        if plain and language and read <= found | imported | _INSIDE:
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
            node.decorator_list = [item for item in node.decorator_list if not _is_tuner(item)]
            kept.append(node)
    return ast.unparse(ast.Module(kept, tree.type_ignores))


def _is_tuner(node: ast.expr) -> bool:
    """What chooses constants for a launch: a launch that is repeated names them."""
    return isinstance(node, ast.Call) and _made_by(node) in ("autotune", "heuristics")


def _made_by(call: ast.Call) -> str:
    at: ast.expr = call
    while isinstance(at, ast.Call):
        at = at.func
    return at.attr if isinstance(at, ast.Attribute) else getattr(at, "id", "")


def _only_defined(node: ast.FunctionDef, wanted: set[str]) -> bool:
    """Defining it runs nothing but the decorators of kernels."""
    defaults = [item for item in (*node.args.defaults, *node.args.kw_defaults) if item is not None]
    return _decorators(node) <= wanted and all(isinstance(item, ast.Constant) for item in defaults)
