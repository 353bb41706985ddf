"""The user's own code: imported and called here, only when the user names it.

What it raises becomes an error that names the last line of the user's code, without a traceback.
What it prints goes to the error output, so that a report on the standard output stays whole.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.observe.where import PROGRAM, STANDARD

MESSAGE_LENGTH = 200
_NAMES = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@contextlib.contextmanager
def guarded(what: str, argv: str = "") -> Iterator[None]:
    """Whatever the user's code raises inside, `sys.exit()` too, becomes an InputError."""
    arguments = sys.argv
    sys.argv = [argv or (arguments[0] if arguments else "")]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (KeyboardInterrupt, GeneratorExit, TorchstoneError):
        raise
    except BaseException as error:  # sys.exit() and its like must not end the run unexplained
        raise _told(what, error) from None
    finally:
        sys.argv = arguments


def describe(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        return f"sys.exit({error.code!r:.60})"
    try:
        text = str(error)
    except Exception:  # an exception of the user may fail even to say what it is
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A first line that ends with a colon only announces the second.
    first = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    shown = "".join(letter for letter in first if letter.isprintable())
    if len(shown) > MESSAGE_LENGTH:
        shown = shown[: MESSAGE_LENGTH - 1] + "…"
    return f"{kind}: {shown}" if shown else kind


def place_of(error: BaseException) -> str:
    """`file:line` of the last line of the user's own code that the error went through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}:{error.lineno}"
    return str(PROGRAM.last_raised(error) or PROGRAM.last_raised(error, STANDARD))


def _told(what: str, error: BaseException) -> InputError:
    place = place_of(error)
    where = f"{what} ({place})" if place else what
    return InputError(
        where,
        describe(error),
        Text("code that runs to its end", "能够运行完成的代码"),
        Text("fix it there and try again", "请修正此处后重试"),
    )


def _short(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def import_named(source: str) -> ModuleType:
    """Import `package.module`, or a file by its path."""
    if source.endswith(".py"):
        return import_file(Path(source))
    if not _NAMES.fullmatch(source):
        beside = Path(f"{source}.py")
        hint = f"{beside}:…" if beside.is_file() else "package.module:name"
        raise UsageError(
            "target",
            repr(source[:100]),
            Text("a Python module or a .py file", "Python 模块或 .py 文件"),
            Text(f"write it as {hint}", f"请写成 {hint}"),
        )
    with _importable(Path.cwd()), guarded(source):
        try:
            return importlib.import_module(source)
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if source != missing and not source.startswith(missing + "."):
                raise
    raise InputError(
        source,
        f"no module named {missing!r}",
        Text(
            f"a module that Python finds from {Path.cwd()}", f"Python 能从 {Path.cwd()} 找到的模块"
        ),
        Text(
            "run from the project's folder, install the project, or give the path of the file",
            "请在项目目录中运行、安装该项目，或直接给出文件路径",
        ),
    )


def import_file(path: Path) -> ModuleType:
    """Import a file as a module. `__name__` is not `__main__`: what stands under that is not run."""
    if path.suffix != ".py" or not path.is_file():
        raise InputError(
            str(path),
            _what_is(path),
            Text("a Python file", "Python 文件"),
            Text("give the path of a .py file that exists", "请给出一个存在的 .py 文件路径"),
        )
    path = path.resolve()
    root, name = _package(path)
    with _importable(root), guarded(_short(str(path)), argv=str(path)):
        if "." in name:
            module = importlib.import_module(name)
            if module.__file__ and Path(module.__file__).resolve() == path:
                return module
        return _load(path)


def _what_is(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "a file that is not Python" if path.exists() else "no such file"


def _package(path: Path) -> tuple[Path, str]:
    """The folder to import from and the module's full name: a file may be part of a package."""
    folder, names = path.parent, [path.stem]
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names)


def _load(path: Path) -> ModuleType:
    name = path.stem
    if name in sys.modules or name in sys.stdlib_module_names:
        name = f"_target_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Classes look up the module they were made in.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules beside the user's file come first while it is imported; later they come last, so
    that what the model imports when it runs is found and nothing else is hidden."""
    entry = str(folder)
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if sys.path[:1] == [entry]:
            del sys.path[0]
        if entry not in sys.path:
            sys.path.append(entry)


def attribute(module: ModuleType, path: str, what: str) -> Any:
    """What a module calls by this name, dots and all."""
    value: Any = module
    for name in path.split("."):
        with guarded(what):
            try:
                value = getattr(value, name)
                continue
            except AttributeError:
                pass
        known = sorted(item for item in vars(module) if not item.startswith("_"))
        raise unknown(what, name, known, InputError)
    return value
