"""C candidates are compiled in a cell that sees the compiler, its headers and the candidate.

The compiler reads whatever the source names, and says what it read: so it runs behind walls, and
of its messages only lines about the candidate's own file are kept.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchstone.kernels.c.binary import executable_data
from torchstone.kernels.c.replay import driver_source
from torchstone.kernels.c.source import NAME, CSource, preprocessed_fault
from torchstone.kernels.sessions.workshop import Finished, Workshop

_COMPILE_SECONDS = 60
_MEMORY_BYTES = 4 << 30
_MOST_MESSAGES, _LONGEST_MESSAGE = 8, 200
"""What is kept of a compiler's messages: enough to correct an error, too little to carry a file."""
_LANGUAGE = ("-std=gnu11", "-fno-diagnostics-show-caret", "-fdiagnostics-color=never")
_CLEAN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_INSTRUCTIONS = re.compile(
    r"^\s*[0-9a-f]+:\s.*?\b(rdtscp?|rdpmc|rdrand|rdseed|rdpid|syscall|sysenter|int\s+\$0x80|"
    r"svc|cntvct\w*|cntpct\w*|pmccntr\w*|rdtime|rdcycle)\b",
    re.M,
)
_MATHS = re.compile(
    r"(f?(max|min|abs|dim|ma|mod)|exp(2|m1|10)?|log(2|10|1p|b)?|pow|sqrt|cbrt|"
    r"hypot|a?(sin|cos|tan)h?|atan2|sincos|erfc?|[lt]gamma|ceil|floor|trunc|"
    r"l?l?r(ound|int)|nearbyint|round|scalbl?n|ldexp|frexp|modf|copysign|"
    r"remainder|fdim|fma|fmod|fmax|fmin|fabs|ilogb|nan|signgam)[fl]?(_r)?(_finite)?"
)
_SYMBOLS = re.compile(
    r"(__?\w*(chk|fortify)\w*|mem\w+|str\w+|malloc|calloc|realloc|free|qsort|abs|labs|llabs|"
    r"__stack_chk_fail|__cxa_finalize|__gmon_start__|_ITM_\w+|aligned_alloc|posix_memalign|div|ldiv|rand_r|"
    r"abort|__assert_fail)"
)
_SANITIZE = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g", "-O1")


def compiler() -> str:
    """The system's C compiler; empty when there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or ""


def build_library(source: CSource, workshop: Workshop) -> tuple[Path, str]:
    """The compiled library, and why it cannot be used; the second is empty when it can."""
    folder = workshop.scratch()
    target = folder / "kernel.so"
    said = _preprocess(source, workshop, folder) or _compile(
        source, workshop, folder, "-O2", "-shared", "-fPIC", "-o", target.name, "kernel.i", "-lm"
    )
    return target, said or executable_data(target.read_bytes()) or _foreign(workshop, target)


def build_driver(source: CSource, workshop: Workshop, folder: Path) -> tuple[Path, str]:
    """A program that repeats recorded calls under the sanitizers; the same text is compiled."""
    (folder / "driver.c").write_text(driver_source(source), "utf-8")
    target = folder / "driver"
    said = _preprocess(source, workshop, folder) or _compile(
        source, workshop, folder, *_SANITIZE, "-o", target.name, "driver.c", "kernel.i", "-lm"
    )
    return target, said


def has_sanitizers(workshop: Workshop, folder: Path) -> bool:
    """Whether the compiler makes a program with them at all."""
    (folder / "empty.c").write_text("int main(void) { return 0; }\n", "utf-8")
    command = [compiler(), *_LANGUAGE, *_SANITIZE, "-o", "empty", "empty.c"]
    return not _run(workshop, command, folder).reason


def _preprocess(source: CSource, workshop: Workshop, folder: Path) -> str:
    """Write kernel.i and judge it; why it is refused."""
    (folder / NAME).write_text(source.text, "utf-8")
    said = _compile(
        source, workshop, folder, "-E", "-MD", "-MF", "kernel.d", "-o", "kernel.i", NAME
    )
    if said:
        return said
    foreign = _foreign_files((folder / "kernel.d").read_text("utf-8", "replace"))
    if foreign:
        return "includes a file that is no header of the compiler"
    fault = preprocessed_fault((folder / "kernel.i").read_text("utf-8", "replace"), source)
    return f"{fault.text} (line {fault.line})" if fault else ""


def _foreign_files(rule: str) -> list[str]:
    """Files that the preprocessor read and that are neither the candidate nor a system header."""
    names = rule.partition(":")[2].replace("\\\n", " ").split()
    allowed = [path.resolve() for path in _include_folders()]
    return [
        name for name in names
        if name != NAME and not any(Path(name).resolve().is_relative_to(path) for path in allowed)
    ]  # fmt: skip


def _compile(source: CSource, workshop: Workshop, folder: Path, *arguments: str) -> str:
    """Run the compiler in a cell; what it says of the candidate when it fails, else nothing."""
    workshop.start()
    done = _run(workshop, [compiler(), *_LANGUAGE, *arguments], folder)
    if not done.reason:
        return ""
    if "time is up" in done.reason:
        return "the compiler did not end in time"
    said = _messages(done.output, source.line - 1)
    return "\n".join(said) or f"the compiler failed ({done.reason})"


def _messages(output: str, lines_before: int) -> list[str]:
    """What the compiler said of the candidate's own file: line, kind and words, bounded."""
    found = re.findall(rf"^{NAME}:(\d+):(?:\d+:)? (?:fatal )?(error|warning): (.+)$", output, re.M)
    errors = [item for item in found if item[1] == "error"] or found
    return [
        f"line {int(line) + lines_before}: {kind}: {words[:_LONGEST_MESSAGE]}"
        for line, kind, words in errors[:_MOST_MESSAGES]
    ]


def _run(workshop: Workshop, command: Sequence[str], folder: Path) -> Finished:
    return workshop.run_program(
        command, folder, seconds=4 * _COMPILE_SECONDS, cpu_seconds=_COMPILE_SECONDS,
        memory_bytes=_MEMORY_BYTES, readable=_readable(), may_fork=True,
    )  # fmt: skip


@functools.cache
def _readable() -> tuple[Path, ...]:
    """The compiler, the programs that it starts, its headers, and system libraries."""
    names = (compiler(), *(shutil.which(name) or "" for name in ("as", "ld", "nm", "objdump")))
    programs = [Path(name).resolve() for name in names if name]
    libraries = [
        Path(name) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/libexec")
    ]
    return tuple(
        path
        for path in (*programs, *libraries, *_search_folders(), *_include_folders(),
                     Path("/etc/ld.so.cache"), Path("/dev/null"))
        if path.exists()
    )  # fmt: skip


def _search_folders() -> Iterator[Path]:
    said = _ask_compiler("-print-search-dirs").stdout
    for row in said.splitlines():
        for name in row.partition("=")[2].split(os.pathsep):
            if name and Path(name).is_dir():
                yield Path(name).resolve()


@functools.cache
def _include_folders() -> tuple[Path, ...]:
    """Where the compiler looks for headers when nobody tells it more."""
    said = _ask_compiler("-E", "-v", "-x", "c", os.devnull).stderr
    listed = said.partition("search starts here:\n#include <")[2].partition("End of search")[0]
    names = [row.strip() for row in listed.splitlines()[1:]]
    return tuple(Path(name).resolve() for name in names if Path(name).is_dir())


def _ask_compiler(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A question that no candidate has a part in."""
    return subprocess.run(
        [compiler(), *arguments], capture_output=True, text=True, check=False, errors="replace",
        env=_CLEAN, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _foreign(workshop: Workshop, library: Path) -> str:
    """Functions and instructions that no kernel needs: whatever the source calls them, they are
    here."""
    nm, objdump = shutil.which("nm"), shutil.which("objdump")
    if nm:
        said = _run(workshop, [nm, "-D", "--undefined-only", library.name], library.parent).output
        names = [row.split()[-1].partition("@")[0] for row in said.splitlines() if row.split()]
        other = [
            name for name in names if not _MATHS.fullmatch(name) and not _SYMBOLS.fullmatch(name)
        ]
        if other:
            return f"takes {', '.join(sorted(other))} from outside"
    if objdump:
        command = [objdump, "-d", "--no-show-raw-insn", library.name]
        said = _run(workshop, command, library.parent).output
        found = sorted({item[1] for item in _INSTRUCTIONS.finditer(said)})
        if found:
            return f"runs the instruction {', '.join(found)}"
    return ""
