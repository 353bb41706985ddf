"""A script or a function of the user's is run in this process, as Python itself would run it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import CodeType, FrameType, ModuleType

from torchstone.core.errors import InputError, UsageError
from torchstone.core.text import Text

Compile = Callable[[str], CodeType | None]
"""From the path of a script to the code to run; None for the code as it stands."""


def check_subject(command: str, script: str, call: str) -> None:
    """A script that exists or module:function, and not both."""
    if bool(script) == bool(call):
        raise UsageError(
            f"flow {command}",
            "both a script and --call" if script else "neither a script nor --call",
            Text("one of the two", "二者之一"),
            Text(f"for example: torchstone flow {command} prepare.py -- --limit 100",
                 f"例如：torchstone flow {command} prepare.py -- --limit 100"),
        )  # fmt: skip
    if script and not (Path(script).suffix == ".py" and Path(script).is_file()):
        given = (
            "a folder"
            if Path(script).is_dir()
            else "another file"
            if Path(script).exists()
            else "no such file"
        )
        raise InputError(
            f"flow {command}: {script}", given,
            Text("a Python script that exists", "存在的 Python 脚本"),
            Text("give the path of a .py file", "请给出 .py 文件路径"),
        )  # fmt: skip
    if call and not all(part.strip() for part in call.partition(":")[::2]):
        raise UsageError(
            "--call", repr(call), Text("module:function", "module:function"),
            Text("for example: --call prepare:main", "例如：--call prepare:main"),
        )  # fmt: skip


def run_subject(
    script: str, call: str, arguments: Sequence[str], compiled: Compile | None = None
) -> dict[str, object]:
    """Run it: the variables that a script left, or what a function returned. Its exceptions go
    through, SystemExit too."""
    if script:
        return run_script(script, arguments, compiled)
    return {"returned": call_function(call, arguments)}


def run_script(
    path: str, arguments: Sequence[str], compiled: Compile | None = None
) -> dict[str, object]:
    """As `python SCRIPT ARGS` would: as `__main__`, with its folder on the path."""
    full = os.path.abspath(path)
    code = compiled(full) if compiled is not None else None
    if code is None:
        code = compile(Path(full).read_bytes(), full, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    main.__file__ = full
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    with _as_main(main, [path, *arguments], os.path.dirname(full)):
        exec(code, main.__dict__)
    return {name: value for name, value in vars(main).items() if not name.startswith("__")}


def call_function(call: str, arguments: Sequence[str]) -> object:
    """`module:function`, with the arguments as texts."""
    name, _, path = call.partition(":")
    with _as_main(None, [name, *arguments], os.getcwd()):
        try:
            found: object = importlib.import_module(name)
            for part in path.split("."):
                found = getattr(found, part)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
                raise
            raise _no_function(call, f"no module {error.name}") from None
        except AttributeError:
            raise _no_function(call, f"no {path} in {name}") from None
        if not callable(found):
            raise _no_function(call, f"{path} is a {type(found).__name__}")
        return found(*arguments)


def _no_function(call: str, given: str) -> InputError:
    return InputError(
        f"--call {call}", given, Text("a function that can be called", "可调用的函数"),
        Text("name it as module:function, importable from this folder",
             "请写成 module:function，且可从当前目录导入"),
    )  # fmt: skip


@contextmanager
def _as_main(main: ModuleType | None, argv: list[str], folder: str) -> Iterator[None]:
    """The script's own view of the process; taken back whatever happens."""
    before = sys.modules.get("__main__"), sys.argv, list(sys.path)
    if main is not None:
        sys.modules["__main__"] = main
    sys.argv = argv
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if before[0] is not None:
            sys.modules["__main__"] = before[0]
        sys.argv = before[1]
        sys.path[:] = before[2]


class Terminated(BaseException):
    """The process was asked to end (SIGTERM)."""


@contextmanager
def terminated_by_exception() -> Iterator[None]:
    """SIGTERM raises `Terminated` where the program is, so that what it left can be kept. A handler
    of the program's own is its own, and its child processes end as they would."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        if os.getpid() == owner:
            raise Terminated
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """What the program prints goes to stderr: stdout is for the report."""
    sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # no such file descriptor: nothing can be printed there
        yield
        return
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


def program_hash(script: str, call: str = "") -> str:
    """Of the text of the script, or of the module whose function is called; empty where there is
    none to read."""
    path = script or _module_file(call.partition(":")[0])
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] if path else ""
    except OSError:
        return ""


def _module_file(name: str) -> str:
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return ""
    finally:
        sys.path.remove(os.getcwd())
    return spec.origin or "" if spec is not None else ""
