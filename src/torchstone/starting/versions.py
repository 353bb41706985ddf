"""Obstacles that lie in packages: not installed, or installed in another version than the program was
written for."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import linecache
import platform
import re
import sys
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType

from torchstone.observe.where import is_of_package
from torchstone.starting.obstacles import (
    BrokenPackage,
    MissingPackage,
    Obstacle,
    OtherKeyword,
    OtherVersion,
    StatedVersion,
)

_KEYWORD = re.compile(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'")
_CANNOT_IMPORT = re.compile(r"cannot import name '([^']+)' from '([^']+)'")
_NOT_THEIRS = ("torch", "numpy", "jaxtyping", "beartype", "typeguard")
"""What these refuse is the program's: the last three are there to judge their caller."""


def obstacle_of_import(error: ImportError) -> Obstacle | None:
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        if top != error.name and is_installed(top):
            home, _, part = error.name.rpartition(".")
            return OtherVersion(home, part, version_of(top))
        return MissingPackage(top, error.name if top != error.name else "")
    match = _CANNOT_IMPORT.search(str(error)[:600])
    if match and "(unknown location)" in str(error):  # an empty folder of its name
        return BrokenPackage(match[2].partition(".")[0])
    return _of_name(match[2], match[1]) if match else _of_refusal(error)


def _of_refusal(error: ImportError) -> Obstacle | None:
    """An installed package that asks for another one in words of its own."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or not is_of_package(frames[-1]):
        return None
    asked = [word.lower() for word in re.findall(r"[A-Za-z]\w+", str(error)[:200])]
    home = frames[-1].rpartition("-packages/")[2].removesuffix("/__init__.py").removesuffix(".py")
    named = next((word for word in asked if word in home.split("/")), "")
    return MissingPackage(named or home.partition("/")[0])


def _of_name(module: str, name: str) -> Obstacle | None:
    """A name that a module of Python itself, or of an installed package, does not have."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return OtherVersion(module, name, f"(Python {platform.python_version()})")
    return OtherVersion(module, name, version_of(top)) if is_installed(top) else None


def obstacle_of_attribute(error: AttributeError) -> Obstacle | None:
    """A name that a module of an installed package does not have (any more). torch itself is what is
    checked: a name that it lacks is the program's."""
    home = error.obj if isinstance(error.obj, ModuleType) else None
    name = home.__name__ if home is not None else ""
    match = re.match(r"module '([^']+)' has no attribute '([^']+)'", str(error)[:600])
    name, asked = (match[1], match[2]) if match else (name, error.name or "")
    if not match and not name:
        name, asked = _asked_of_module(error)
    if not name and error.obj is not None and error.name:
        return _of_instance(error.obj, error.name)
    if not name or not asked or name.partition(".")[0] == "torch":
        return None
    return _of_name(name, asked)


def _of_instance(value: object, name: str) -> Obstacle | None:
    """A method or attribute that objects of an installed package had in another version."""
    kind = type(value)
    top = kind.__module__.partition(".")[0]
    if top in ("torch", "numpy", "builtins") or not is_installed(top):
        return None
    return OtherVersion(f"{kind.__module__}.{kind.__name__}", name, version_of(top))


def _asked_of_module(error: AttributeError) -> tuple[str, str]:
    """Module and name where a module's own `__getattr__` refuses, in words of its own."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    last = frames[-1] if frames else None
    if last is None or last.f_code.co_qualname != "__getattr__":
        return "", ""
    given = last.f_code.co_varnames[:1]
    asked = last.f_locals.get(given[0], "") if given else ""
    return str(last.f_globals.get("__name__", "")), str(asked)


def obstacle_of_stated_version(error: BaseException) -> Obstacle | None:
    """A version of a package on which the program insists: `assert torch.__version__.split(".")[0] == "1"`."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return None
    frame, line = frames[-1]
    statement = _assertion_at(frame.f_code.co_filename, line)
    packages = _packages_asked(statement, frame) if statement is not None else []
    if statement is None or len(packages) != 1:
        return None
    package = packages[0]
    test = compile(ast.Expression(statement.test), frame.f_code.co_filename, "eval")
    real = package.__version__
    try:
        for version in _versions_named(statement.test):
            package.__version__ = version  # type: ignore[attr-defined]
            if _holds(test, frame):
                top = package.__name__.partition(".")[0]
                return StatedVersion(package.__name__, version, version_of(top))
    finally:
        package.__version__ = real  # type: ignore[attr-defined]
    return None


def _assertion_at(file: str, line: int) -> ast.Assert | None:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or line)
    )
    return next(found, None)


def _packages_asked(statement: ast.Assert, frame: FrameType) -> list[ModuleType]:
    """The modules whose `__version__` an assertion reads."""
    names = {
        node.value.id
        for node in ast.walk(statement.test)
        if isinstance(node, ast.Attribute)
        and node.attr == "__version__"
        and isinstance(node.value, ast.Name)
    }
    held = [frame.f_locals.get(name, frame.f_globals.get(name)) for name in sorted(names)]
    return [item for item in held if isinstance(item, ModuleType)]


def _versions_named(test: ast.expr) -> Iterator[str]:
    """Versions made of what an assertion compares with, the shortest first."""
    for node in ast.walk(test):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            for more in ("", ".0", ".0.0"):
                yield f"{node.value}{more}"


def _holds(test: CodeType, frame: FrameType) -> bool:
    try:
        return bool(eval(test, frame.f_globals, dict(frame.f_locals)))
    except Exception:  # a version that the code cannot read
        return False


def obstacle_of_guarded_import(error: NameError) -> Obstacle | None:
    """A name that is missing because an import of it, which the program tries, failed."""
    frames = list(traceback.walk_tb(error.__traceback__))
    text = "".join(linecache.getlines(frames[-1][0].f_code.co_filename)) if frames else ""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    tried = [
        inner for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)
    ]
    for node in tried:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        home = getattr(node, "module", None) if not getattr(node, "level", 0) else None
        for alias in node.names:
            package = (home or alias.name).partition(".")[0]
            bound = alias.asname or (alias.name if home else package)
            if bound == error.name and not is_installed(package):
                return MissingPackage(package)
    return None


def obstacle_of_keyword(error: TypeError) -> Obstacle | None:
    """A function of an installed package that the program calls by a keyword of another version."""
    match = _KEYWORD.search(str(error)[:600])
    if match is None:
        return None
    name, keyword = match[1], match[2]
    owner = name.removesuffix(".__init__").removesuffix(".__new__")
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if is_of_package(frame.f_code.co_filename):
            continue
        held = [*frame.f_globals.values(), *frame.f_locals.values()]
        held += [
            getattr(module, owner.partition(".")[0], None)
            for module in list(held)
            if isinstance(module, ModuleType)
        ]
        for value in held:
            home = getattr(value, "__module__", "") or ""
            if getattr(value, "__qualname__", "") == owner and home.partition(".")[0] != "torch":
                top = home.partition(".")[0]
                return (
                    OtherKeyword(home, owner, keyword, version_of(top))
                    if is_installed(top)
                    else None
                )
    return None


def is_installed(top: str) -> bool:
    """Whether a name is a package of this environment, not of the project or the standard library."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    return any(map(is_of_package, places))


def version_of(top: str) -> str:
    """The installed version of the package that a name is imported from."""
    for name in (top, *importlib.metadata.packages_distributions().get(top, ())):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return str(getattr(sys.modules.get(top), "__version__", ""))


def raising_package(error: BaseException) -> str:
    """The installed package whose own code raised the exception; empty where the program or torch did."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [name for name in files if not name.startswith("<")]
    if isinstance(error, SyntaxError) and error.filename:  # a package of another version of Python
        own.append(error.filename)
    if not own or not is_of_package(own[-1]):
        return ""
    package = own[-1].rpartition("-packages/")[2].partition("/")[0]
    return "" if package in _NOT_THEIRS else package


def package_that_breaks(error: BaseException) -> str:
    """The installed package whose import raised the exception; empty where none was being imported."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    importing = [code.co_filename for code in frames if code.co_name == "<module>"]
    if isinstance(error, SyntaxError) and error.filename:  # written for another version of Python
        importing.append(error.filename)
    names = [
        name.rpartition("-packages/")[2].partition("/")[0]
        for name in importing
        if is_of_package(name)
    ]
    return next((name for name in names if name not in _NOT_THEIRS), "")


def last_package(error: BaseException) -> str:
    """The installed package in which an error was raised; torch itself is not one."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [
        name.rpartition("-packages/")[2].partition("/")[0] for name in files if is_of_package(name)
    ]
    return next((name for name in reversed(names) if name not in ("torch", "")), "")
