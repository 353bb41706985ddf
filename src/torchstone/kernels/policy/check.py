"""The static policy: what a candidate may import, name and do, read from its syntax tree alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from torchstone.core.text import Text
from torchstone.kernels.candidate import Candidate
from torchstone.kernels.policy import reasons
from torchstone.kernels.policy.kernel_bodies import kernel_breaches
from torchstone.kernels.policy.members import member_breaches
from torchstone.kernels.policy.questions import question_breaches
from torchstone.kernels.policy.syntax import Breach, Reason, breach, homes_of, path_of, root_of

_COMMON = frozenset({"__future__", "math", "typing", "dataclasses", "functools", "itertools",
                     "collections", "operator", "enum", "numbers", "torch", "numpy", "mindspore"})  # fmt: skip
_OF = {
    "triton": frozenset({"triton"}),
    "numba": frozenset({"numba"}),
    "c": frozenset({"torchstone_kernel"}),
    "swft": frozenset({"swft"}),
    "torch": frozenset(),
    "numpy": frozenset({"scipy"}),
}
_SUBMODULES = frozenset(
    "torch.nn torch.nn.functional torch.nn.init torch.nn.parameter torch.fft torch.linalg "
    "torch.special torch.autograd numpy.typing numpy.linalg numpy.fft numpy.lib.stride_tricks "
    "triton.runtime triton.tools.tensor_descriptor triton.language triton.language.extra triton.language.extra.libdevice "
    "triton.language.math triton.language.standard numba.cuda numba.np collections.abc scipy.special "
    "scipy.linalg numba.types numba.core.types numba.cuda.libdevice swft.core swft.api".split()
)
_WHOLE = frozenset({"swft.core", "swft.api"})
"""Modules that may be imported with a star: SWFT is written so."""
_NAMES = frozenset(
    "eval exec compile open input breakpoint globals locals vars dir getattr setattr delattr "
    "memoryview __import__ __builtins__ __loader__ __spec__ exit quit help".split()
)
_ATTRIBUTES = frozenset(
    "os sys subprocess gc inspect ctypes builtins importlib threading multiprocessing socket pickle "
    "shutil pathlib tempfile signal mmap _getframe f_back f_globals f_locals f_code gi_frame "
    "tb_frame cr_frame ag_frame tb_next func_globals func_code co_code tofile with_traceback "
    "untyped_storage typed_storage storage share_memory_ set_ resize_ resize_as_ setflags dump dumps "
    "register_forward_hook register_forward_pre_hook register_hook register_full_backward_hook "
    "register_post_accumulate_grad_hook register_state_dict_pre_hook add_pre_run_hook mro".split()
)
"""Names that no kernel needs, on whatever object they are looked up."""
_INNER = frozenset("base handle fn src rewriter py_func".split())
"""What lies behind an array or a kernel; a candidate may use these names for members of its own."""
_PATHS = tuple(
    "torch.load torch.save torch.hub torch.jit torch.compile torch.ops torch.library torch.utils "
    "torch.classes torch.multiprocessing torch.distributed torch.package torch.overrides "
    "torch.from_file torch.manual_seed torch.seed torch.set_ torch.random "
    "torch.use_deterministic torch.export torch.fx torch.futures torch.profiler torch.cuda.Stream "
    "torch.cuda.stream torch.backends torch.nn.modules.module torch.testing torch.storage "
    "torch.UntypedStorage torch.serialization torch.autograd.graph numpy.load numpy.save "
    "numpy.fromfile numpy.memmap numpy.loadtxt numpy.genfromtxt numpy.savetxt numpy.ctypeslib "
    "numpy.core numpy.lib.format numpy.lib.npyio numpy.testing numpy.seterr numpy.set_ "
    "numpy.random.seed numpy.distutils numpy.f2py triton.compiler triton.testing "
    "triton.knobs triton.backends triton.tools.compile triton.tools.link numba.config numba.extending numba.objmode "
    "numba.core.dispatcher numba.core.registry numba.carray numba.farray numba.misc "
    "numba.literally numba.cuda.simulator operator.attrgetter operator.methodcaller "
    "typing.get_type_hints typing.ForwardRef dataclasses.make_dataclass numpy.source".split()
)
"""Parts of packages that reach beyond computing."""
_HARMLESS = frozenset({"_version", "_init_handles"})
"""Private members that say nothing but how a tensor or a compiled kernel is used on a device."""
_DUNDERS = frozenset({"__init__", "__call__", "__name__", "__version__", "__doc__", "__all__",
                      "__post_init__", "__len__", "__getitem__", "__iter__"})  # fmt: skip
_DEFINED = _DUNDERS | {"__repr__", "__eq__", "__hash__", "__lt__", "__enter__", "__exit__"}
"""Methods of Python's own that a class may define: none that torch or numpy calls in its place."""
_ASSIGNED = frozenset({"__all__", "__version__", "__slots__"})
_REFERENCE = frozenset({"Model", "get_inputs", "get_init_inputs"})


def breaches(candidate: Candidate) -> list[Breach]:
    """All breaches, in the order of lines; a file that is no Python is one breach."""
    try:
        tree = ast.parse(candidate.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = (error.lineno or 0) if isinstance(error, SyntaxError) else 0
        said = str(error.args[0]) if error.args else type(error).__name__
        what = Text(f"does not parse as Python: {said}", f"无法按 Python 解析：{said}")
        return [Breach(line, what, reasons.SYNTAX)]
    found = [
        replace(item, reason=item.reason or reason)
        for part, reason in _parts(tree, candidate.implementation)
        for item in part
    ]
    return sorted(set(found), key=lambda item: (item.line, item.what.en))


def _parts(tree: ast.Module, implementation: str) -> Iterator[tuple[Iterator[Breach], Reason]]:
    """The parts of the policy, each with the reason for it."""
    yield _imports(tree, implementation), reasons.IMPORT
    yield _names(tree), reasons.REACH
    yield _writes(tree), reasons.CHANGE
    yield _shape(tree), reasons.FORM
    yield question_breaches(tree), reasons.QUESTION
    yield member_breaches(tree), reasons.MEMBER
    if implementation not in ("torch", "numpy"):
        yield _fallbacks(tree), reasons.FALLBACK
    yield kernel_breaches(tree, implementation), reasons.KERNEL


def _imports(tree: ast.Module, implementation: str) -> Iterator[Breach]:
    allowed = _COMMON | _OF[implementation]
    optional = {id(part) for node in tree.body if _is_trial(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in optional:
            continue  # a package that is not there: a cell sees none but those of its language
        if isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                yield breach(node, "imports from a package around it", "从外层包导入")
            names = [base]
            for item in node.names:
                if item.name == "*" and base not in _WHOLE:
                    yield breach(node, f"imports everything from {base}", f"从 {base} 导入全部")
                if item.name in _ATTRIBUTES or item.name in _NAMES:
                    yield breach(node, f"imports {base}.{item.name}", f"导入 {base}.{item.name}")
        else:
            continue
        for name in names:
            root = name.partition(".")[0]
            if root not in allowed or ("." in name and name not in _SUBMODULES):
                yield breach(node, f"imports {name}", f"导入 {name}")


def _names(tree: ast.Module) -> Iterator[Breach]:
    homes = homes_of(tree)
    own = _own_members(tree)
    yield from _bound_dunders(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            path = homes.get(node.id, "")
            if node.id in _NAMES:
                yield breach(node, f"uses {node.id}", f"使用 {node.id}")
            elif _beyond(path):
                yield breach(node, f"uses {path}", f"使用 {path}")
        elif isinstance(node, ast.Attribute):
            dunder = node.attr.startswith("__") and node.attr.endswith("__")
            private = node.attr in _INNER or (
                node.attr.startswith("_") and not dunder and node.attr not in _HARMLESS
            )
            if (
                node.attr in _ATTRIBUTES
                or (dunder and node.attr not in _DUNDERS)
                or (private and node.attr not in own)
            ):
                yield breach(node, f"reaches for .{node.attr}", f"访问 .{node.attr}")
            path = path_of(node, homes)
            if _beyond(path):
                yield breach(node, f"uses {path}", f"使用 {path}")
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                if name in _ATTRIBUTES or name.startswith("__"):
                    yield breach(node, f"reaches for .{name}", f"访问 .{name}")
        elif isinstance(node, ast.FunctionDef):
            dunder = node.name.startswith("__") and node.name.endswith("__")
            if dunder and node.name not in _DEFINED:
                yield breach(node, f"defines {node.name}", f"定义了 {node.name}")
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield breach(node, "keeps state in a global name", "用全局名称保存状态")
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield breach(node, "is asynchronous", "使用异步")
        elif isinstance(node, ast.keyword) and node.arg == "forceobj":
            yield breach(node.value, "runs Python where a kernel should be compiled",
                          "在应编译的内核中运行 Python")  # fmt: skip


def _own_members(tree: ast.Module) -> set[str]:
    """Attributes that the candidate itself makes: on self, in a class, by name in register_buffer."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "ctx"):
                found.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            found |= {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            found |= {
                part.id for item in node.body for part in ast.walk(item)
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }  # fmt: skip
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("register_buffer", "register_parameter") and node.args:
                name = node.args[0]
                found |= {str(name.value)} if isinstance(name, ast.Constant) else set()
    return found


def _bound_dunders(tree: ast.Module) -> Iterator[Breach]:
    """A name of Python's own that is assigned: `__array_interface__ = …` hands over any memory."""
    for node in ast.walk(tree):
        names: list[str | None] = []
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.alias):
            names = [node.asname]
        elif isinstance(node, ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names = [node.name]
        for name in names:
            if name and name.startswith("__") and name.endswith("__") and name not in _ASSIGNED:
                yield breach(node, f"assigns {name}", f"给 {name} 赋值")


def _beyond(path: str) -> bool:
    """Part of a package that reaches beyond computing, or its private side."""
    if not path:
        return False
    first, *rest = path.split(".")
    if first not in ("__future__",) and any(part.startswith("_") for part in rest):
        return not all(part in _DUNDERS or not part.startswith("_") for part in rest)
    return any(
        path == item or path.startswith((item + ".", item if item.endswith("_") else item + "."))
        for item in _PATHS
    )


def _imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(item.asname or item.name).partition(".")[0] for item in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {item.asname or item.name for item in node.names}
    return found


def _derived(tree: ast.Module, names: set[str]) -> set[str]:
    """Also names that were given something imported, such as `T = torch.Tensor`."""
    found = set(names)
    for _ in range(3):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
                if root_of(node.value) in found:
                    found |= {item.id for item in node.targets if isinstance(item, ast.Name)}
    return found


def _of_call(node: ast.AST) -> bool:
    """An attribute of what a call returns, such as `type(x).relu`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call)


def _writes(tree: ast.Module) -> Iterator[Breach]:
    """Nothing that was imported, and no name of Python's own, may be changed."""
    imported = _derived(tree, _imported(tree))
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(
            node, ast.AugAssign | ast.AnnAssign | ast.For | ast.NamedExpr | ast.comprehension
        ):
            targets = [node.target]
        elif isinstance(node, ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.With):
            targets = [item.optional_vars for item in node.items if item.optional_vars]
        for target in targets:
            for part in ast.walk(target):
                foreign = root_of(part) in imported or _of_call(part)
                if isinstance(part, ast.Attribute | ast.Subscript) and foreign:
                    name = ast.unparse(part)[:60]
                    yield breach(part, f"changes {name}", f"修改 {name}")
                if isinstance(part, ast.Name) and part.id in ("__builtins__", "__name__"):
                    yield breach(part, f"changes {part.id}", f"修改 {part.id}")


def _shape(tree: ast.Module) -> Iterator[Breach]:
    """ModelNew is there, stands on its own, and nothing calls itself the reference."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not any(node.name == "ModelNew" for node in classes):
        assigned = any(
            isinstance(node, ast.Assign)
            and any(isinstance(item, ast.Name) and item.id == "ModelNew" for item in node.targets)
            for node in tree.body
        )
        if not assigned:
            yield Breach(0, Text("defines no class ModelNew", "没有定义 ModelNew 类"))
        else:
            yield Breach(
                0,
                Text(
                    "ModelNew must be a class defined in this file",
                    "ModelNew 必须是本文件中定义的类",
                ),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            if node.name in _REFERENCE:
                yield breach(node, f"defines {node.name}", f"定义了 {node.name}")
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id in _REFERENCE:
                    yield breach(node, f"inherits from {base.id}", f"继承自 {base.id}")
            if node.keywords:
                yield breach(node, "has a metaclass", "使用元类")
            if any(ast.unparse(base).endswith("Tensor") for base in node.bases):
                yield breach(node, "makes a subclass of Tensor", "定义 Tensor 的子类")
        elif isinstance(node, ast.Name) and node.id in _REFERENCE:
            yield breach(node, f"names {node.id}", f"引用 {node.id}")


def _is_trial(node: ast.stmt) -> bool:
    """`try: import apex` at the top of a file, with nothing but constants beside it.

    What it imports is named nowhere else: a name that was imported so is refused by its use.
    """
    if not isinstance(node, ast.Try) or node.finalbody:
        return False
    bodies = [*node.body, *node.orelse, *(part for item in node.handlers for part in item.body)]
    constants = all(
        isinstance(item, ast.Import | ast.Pass)
        or (isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant))
        or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
        for item in bodies
    )
    return constants and any(isinstance(item, ast.Import) for item in node.body)


def _fallbacks(tree: ast.Module) -> Iterator[Breach]:
    trials = {id(node) for node in tree.body if _is_trial(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Try | ast.TryStar) and id(node) not in trials:
            yield breach(node, "has a try, behind which a fallback may hide",
                          "含有 try，可能隐藏后备实现")  # fmt: skip
