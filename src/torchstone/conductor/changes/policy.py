"""What an edit that a model or an agent wrote may add to a file of the project.

Text of the reviewed project reaches whoever writes such an edit, and may ask for anything: a
network call, a file, a process. The policy compares the syntax trees before and after. Whatever
reaches out of the program counts, and must not become more than it was.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.changes.patches import FileChange

ALLOWED_MODULES = frozenset(("torch", "numpy", "math", "contextlib", "functools"))
"""They compute. The project's own modules may be imported, too."""
_CLOSED_IN_TORCH = """
    hub load save package ops classes multiprocessing serialization jit.load jit.save
    export.load export.save onnx library storage from_file distributed.rpc distributed.launch
    distributed.run distributed.elastic distributed.checkpoint distributed.TCPStore
    distributed.FileStore distributed.init_process_group utils.cpp_extension utils.model_zoo
    utils.file_baton utils.collect_env utils.tensorboard utils.bottleneck utils.hipify
    utils.show_pickle
""".split()
_CLOSED_IN_NUMPY = """
    ctypeslib load save savez savez_compressed savetxt loadtxt genfromtxt fromfile memmap f2py
    distutils testing lib core
""".split()
_CLOSED_MODULES = (
    *(f"torch.{name}" for name in _CLOSED_IN_TORCH),
    *(f"numpy.{name}" for name in _CLOSED_IN_NUMPY),
)
"""Parts of allowed modules that read, write, start or load something."""
_SHARED_NAMES = frozenset(("random", "signal", "types", "select", "profiler", "copy", "array"))
"""Names of torch and numpy that modules of the standard library have, too."""
_HARMLESS_MODULES = frozenset(
    "collections itertools typing dataclasses copy random operator statistics enum abc time".split()
)
"""Modules of the standard library whose members may be used more often where they are imported already."""
_PURE_FUNCTIONS = frozenset(
    f"os.path.{name}" for name in ("join", "basename", "dirname", "splitext")
)
_CLOSED_CALLS = frozenset(
    """
    exec eval compile __import__ open input globals locals vars dir breakpoint exit quit
    memoryview SystemExit KeyboardInterrupt setattr delattr
""".split()
)
_FILES = """
    write_text write_bytes read_text read_bytes unlink rmdir rmtree mkdir makedirs rename
    symlink_to hardlink_to chmod touch tofile fromfile savefig to_csv to_pickle to_parquet
    to_json save_pretrained
"""
_NETWORK_AND_PROCESSES = """
    urlopen urlretrieve connect connect_ex sendto sendall sendmsg recvfrom bind listen popen
    Popen system spawn fork execv execve check_call check_output from_pretrained push_to_hub
    load_dataset load_url hf_hub_download snapshot_download environ getenv putenv post request
    send recv download upload publish log_artifact
"""
_FRAMES = """
    f_globals f_builtins f_locals f_back gi_frame cr_frame ag_frame tb_frame tb_next gi_code
    cr_code co_code mro func_globals modules
"""
"""The way from a value to everything that is loaded."""
_CLOSED_ATTRIBUTES = frozenset((_FILES + _NETWORK_AND_PROCESSES + _FRAMES).split())
_PLAIN_DUNDERS = frozenset(
    """
    __init__ __len__ __getitem__ __setitem__ __iter__ __next__ __call__ __enter__ __exit__
    __repr__ __eq__ __hash__ __contains__ __add__ __mul__ __post_init__ __name__ __all__
    __version__
""".split()
)
"""What a class may define, and `super().__init__(...)`."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place of a file that reaches out of the program."""

    what: str
    once_is_enough: bool = False
    """A member of another package: allowed again where the file uses it already."""


@dataclass(frozen=True, slots=True)
class Project:
    """The names that decide what a module of the project may be used for."""

    modules: frozenset[str]
    """Modules of its own."""
    foreign: frozenset[str]
    """Names that its files give to modules of others: `helpers.requests` is not the project's."""


def refuse_reach(changes: tuple[FileChange, ...], root: Path) -> str:
    """Why a change that somebody else wrote may not be made; empty where it may."""
    for change in changes:
        if not change.path.endswith(".py"):
            return f"{change.path} is not a .py file: only those can be checked for what they reach"
    project = _read_project(root)
    for change in changes:
        before = Counter(_uses(ast.parse(change.before), project))
        after = Counter(_uses(ast.parse(change.after), project))
        for use, count in after.items():
            if count > before[use] and not (use.once_is_enough and before[use]):
                return f"it adds {use.what} to {change.path}"
    return ""


def _read_project(root: Path) -> Project:
    files = [path for path in root.glob("**/*.py") if path.is_file() and not path.is_symlink()]
    names = {path.stem for path in files} | {path.parent.name for path in files}
    # a file of the project that is called like a module of the system does not open that module
    own = frozenset(names - set(sys.stdlib_module_names) - ALLOWED_MODULES)
    foreign: set[str] = set()
    for path in files:
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # a file that does not parse cannot be imported either
        foreign |= {
            name
            for name, dotted in _aliases(tree)
            if dotted.partition(".")[0] not in own | ALLOWED_MODULES | _HARMLESS_MODULES
        }
    return Project(own, frozenset(foreign))


def _uses(tree: ast.Module, project: Project) -> Iterator[Use]:
    """Everything in a file that reaches out of the program, once for each place."""
    aliases = dict(_aliases(tree))
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                yield from _imported(item.name, project)
        elif isinstance(node, ast.ImportFrom):
            for item in node.names:
                if node.level:
                    yield from _own_member(item.name, project)
                else:
                    yield from _imported(f"{node.module}.{item.name}", project)
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            inner |= {id(part) for part in _parts(node)}
            yield from _chain(node, aliases, project)
        elif isinstance(node, ast.Name):
            yield from _name(node, id(node) in inner, aliases, project)
        elif isinstance(node, ast.Call):
            yield from _getattr(node)


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that stand for modules or their members."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                yield (
                    item.asname or item.name.partition(".")[0],
                    (item.name if item.asname else item.name.partition(".")[0]),
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for item in node.names:
                yield item.asname or item.name, f"{node.module}.{item.name}"


def _imported(name: str, project: Project) -> Iterator[Use]:
    top, _, member = name.partition(".")
    if top in project.modules:
        yield from _own_member(member, project)
    elif top not in ALLOWED_MODULES or name.endswith(".*"):
        yield Use(f"an import of {name}")
    else:
        yield from _member(name)


def _own_member(dotted: str, project: Project) -> Iterator[Use]:
    """A module of the system or of others, reached through one of the project."""
    for part in dotted.split("."):
        known = part in sys.stdlib_module_names and part not in _SHARED_NAMES
        if known or part in project.foreign:
            yield Use(f"{part} through a module of the project")


def _member(dotted: str) -> Iterator[Use]:
    """A member of an allowed module that is closed, private, or another module behind it."""
    for closed in _CLOSED_MODULES:
        if dotted == closed or dotted.startswith(f"{closed}."):
            yield Use(closed)
    for part in dotted.split(".")[1:]:
        hidden = part in sys.stdlib_module_names and part not in _SHARED_NAMES
        if part.startswith("_") or hidden or part in ALLOWED_MODULES:
            yield Use(dotted)


def _parts(node: ast.Attribute) -> Iterator[ast.expr]:
    inner: ast.expr = node.value
    while True:
        yield inner
        if not isinstance(inner, ast.Attribute):
            return
        inner = inner.value


def _chain(node: ast.Attribute, aliases: Mapping[str, str], project: Project) -> Iterator[Use]:
    """`a.b.c`: by what `a` stands for; by the names alone where that is not a module."""
    parts = [node, *_parts(node)]
    members = [part.attr for part in reversed(parts) if isinstance(part, ast.Attribute)]
    first = parts[-1]
    module = aliases.get(first.id, "") if isinstance(first, ast.Name) else ""
    top = module.partition(".")[0]
    dotted = ".".join((module, *members))
    if top not in ALLOWED_MODULES:
        for name in members:
            yield from _attribute(name)
    if not module:
        return
    if isinstance(node.ctx, ast.Store | ast.Del):
        yield Use(f"an assignment to {dotted}")
    if top in project.modules:
        yield from _own_member(dotted.partition(".")[2], project)
    elif top in ALLOWED_MODULES or top in _HARMLESS_MODULES:
        yield from _member(dotted)
    elif dotted not in _PURE_FUNCTIONS:
        yield Use(dotted, once_is_enough=top not in sys.stdlib_module_names)


def _attribute(name: str) -> Iterator[Use]:
    if name in _CLOSED_ATTRIBUTES or (name.startswith("__") and name not in _PLAIN_DUNDERS):
        yield Use(f".{name}")


def _name(
    node: ast.Name, in_chain: bool, aliases: Mapping[str, str], project: Project
) -> Iterator[Use]:
    if node.id in _CLOSED_CALLS or (node.id.startswith("__") and node.id not in _PLAIN_DUNDERS):
        yield Use(node.id)
    dotted = aliases.get(node.id, "")
    top = dotted.partition(".")[0]
    if not dotted or in_chain or top in project.modules:
        return
    if top in ALLOWED_MODULES or top in _HARMLESS_MODULES:
        # a module as a value: what is done with it later is not seen
        yield from _member(dotted) if "." in dotted else (Use(f"{dotted} as a value"),)
    elif dotted not in _PURE_FUNCTIONS:
        yield Use(dotted, once_is_enough=top not in sys.stdlib_module_names)


def _getattr(call: ast.Call) -> Iterator[Use]:
    """`getattr` with a name that is not written out can reach anything."""
    if not isinstance(call.func, ast.Name) or call.func.id not in ("getattr", "hasattr"):
        return
    name = call.args[1] if len(call.args) > 1 else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        yield Use(f"{call.func.id} with a computed name")
        return
    yield from _attribute(name.value)
    if name.value.startswith("_") or name.value in sys.stdlib_module_names:
        yield Use(f"{call.func.id} of {name.value!r}")
