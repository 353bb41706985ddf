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

from torchstone.kernels.c.binary import early_code, executable_data
from torchstone.kernels.c.replay import driver_source
from torchstone.kernels.c.runner import CPP_SUPPORT, exported_name, runner_source
from torchstone.kernels.c.source import NAME, CSource, preprocessed_fault
from torchstone.kernels.sessions.workshop import Finished, Workshop

_COMPILE_SECONDS = 60
_MEMORY_BYTES = 4 << 30
_MOST_MESSAGES, _LONGEST_MESSAGE = 8, 200
"""What is kept of a compiler's messages: enough to correct an error, too little to carry a file."""
_WORDS = ("-fno-diagnostics-show-caret", "-fdiagnostics-color=never")
_C = ("-std=gnu11",)
_CPP = ("-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
        "-fno-asynchronous-unwind-tables")  # fmt: skip
"""C++ without what needs a library of its own at run time."""
_PLAIN = ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=0", "-fno-stack-protector")
"""Without checks that call functions of the C library behind the author's back."""
_CLEAN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
_INSTRUCTIONS = re.compile(
    r"^\s*[0-9a-f]+:\s.*?\b(rdtscp?|rdpmc|rdrand|rdseed|rdpid|syscall|sysenter|int\s+\$0x80|"
    r"svc|cntvct\w*|cntpct\w*|pmccntr\w*|rdtime|rdcycle)\b",
    re.M,
)
_MATHS = frozenset(
    name + end
    for name in (
        "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs "
        "fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb "
        "lrint lround modf nan nearbyint nextafter pow remainder rint round scalbln scalbn sin sincos sinh sqrt "
        "tan tanh tgamma trunc"
    ).split()
    for end in ("", "f", "l")
)
_SYMBOLS = frozenset(
    "memcpy memmove memset memcmp memchr strlen malloc calloc realloc free aligned_alloc posix_memalign qsort "
    "bsearch abs labs llabs div ldiv lldiv abort __assert_fail _GLOBAL_OFFSET_TABLE_".split()
)
"""What a kernel may take from outside, with the mathematics: memory of its own, and nothing else."""
_CPP_SYMBOLS = frozenset(CPP_SUPPORT)
"""What C++ takes for its own: memory, and the end of a program where a container is used wrongly."""
_LINKED = frozenset(
    ("__cxa_finalize", "__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable")
)
"""What a linker adds to every library."""
_SANITIZE = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g", "-O1")


def compiler(is_cpp: bool = False) -> str:
    """The system's C or C++ compiler; empty when there is none."""
    names = ("c++", "g++", "clang++") if is_cpp else ("cc", "gcc", "clang")
    return next(filter(None, map(shutil.which, names)), "")


def build_runner(source: CSource, workshop: Workshop) -> tuple[Path, str]:
    """A static program with the candidate's functions in it, and why there is none; else nothing."""
    folder = workshop.scratch()
    judged = folder / "kernel.so"
    if not compiler(source.is_cpp):
        return folder / "runner", "there is no C++ compiler (c++, g++ or clang++) on this machine"
    said = (
        _preprocess(source, workshop, folder)
        or _compile(
            source, workshop, folder, *_PLAIN, "-O2", "-fPIC", "-c", "-o", "kernel.o", *_judged_text(source)
        )
        or early_code((folder / "kernel.o").read_bytes())
        # by the compiler for C: no library of C++ is linked, so that what is missing shows
        or _run_compiler(
            [compiler(), "-shared", "-o", judged.name, "kernel.o", "-lm"], source, workshop, folder
        )
        or executable_data(judged.read_bytes())
        or _foreign(workshop, judged, source.is_cpp)
    )  # fmt: skip
    target = folder / "runner"
    if said:
        return target, said
    return target, _link(source, workshop, folder, target.name)


def _link(source: CSource, workshop: Workshop, folder: Path, target: str) -> str:
    """The runner around the functions; all other names of the candidate are its own business."""
    names = [exported_name(number) for number in range(len(source.prototypes))]
    renamed = [
        word
        for old, new in zip(source.prototypes, names, strict=True)
        for word in ("--redefine-sym", f"{old}={new}")
    ]
    kept = [word for name in names for word in ("--keep-global-symbol", name)]
    objcopy = shutil.which("objcopy") or "objcopy"
    for words in (renamed, kept):
        done = _run(workshop, [objcopy, *words, "kernel.o"], folder)
        if done.reason:
            return "the compiled source could not be read"
    (folder / "runner.c").write_text(runner_source(source), "utf-8")
    return _run_compiler(
        [compiler(), *_C, *_WORDS, "-O2", "-static", "-o", target, "runner.c", "kernel.o", "-lm"],
        source, workshop, folder,
    )  # fmt: skip


def build_driver(source: CSource, workshop: Workshop, folder: Path) -> tuple[Path, str]:
    """A program that repeats recorded calls under the sanitizers; the same text is compiled."""
    (folder / "driver.c").write_text(driver_source(source), "utf-8")
    target = folder / "driver"
    said = (
        _preprocess(source, workshop, folder)
        or _run_compiler(
            [compiler(), *_C, *_WORDS, *_SANITIZE, "-c", "-o", "driver.o", "driver.c"], source, workshop, folder
        )
        or _compile(
            source, workshop, folder, *_SANITIZE, "-o", target.name, "driver.o", *_judged_text(source), "-lm"
        )
    )  # fmt: skip
    return target, said


def _judged_text(source: CSource) -> tuple[str, ...]:
    """The file that was judged after the preprocessor, as the compiler takes it."""
    return ("-x", "c++-cpp-output", "kernel.i", "-x", "none") if source.is_cpp else ("kernel.i",)


def has_sanitizers(workshop: Workshop, folder: Path) -> bool:
    """Whether the compiler makes a program with them at all."""
    (folder / "empty.c").write_text("int main(void) { return 0; }\n", "utf-8")
    command = [compiler(), *_C, *_SANITIZE, "-o", "empty", "empty.c"]
    return not _run(workshop, command, folder).reason


def _preprocess(source: CSource, workshop: Workshop, folder: Path) -> str:
    """Write kernel.i and judge it; why it is refused."""
    (folder / NAME).write_text(source.text, "utf-8")
    said = _compile(
        source, workshop, folder, "-E", "-MD", "-MF", "kernel.d", "-o", "kernel.i",
        "-x", "c++" if source.is_cpp else "c", NAME,
    )  # fmt: skip
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
    """Compile in the candidate's language; what is said of it when that fails, else nothing."""
    language = _CPP if source.is_cpp else _C
    command = [compiler(source.is_cpp), *language, *_WORDS, *arguments]
    return _run_compiler(command, source, workshop, folder)


def _run_compiler(command: Sequence[str], source: CSource, workshop: Workshop, folder: Path) -> str:
    """Run a compiler in a cell; what it says of the candidate when it fails, else nothing."""
    workshop.start()
    done = _run(workshop, command, folder)
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
    names = (
        compiler(),
        compiler(is_cpp=True),
        *(shutil.which(name) or "" for name in ("as", "ld", "nm", "objdump", "objcopy")),
    )
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
    said = _ask_compiler(compiler(), "-print-search-dirs").stdout
    for row in said.splitlines():
        for name in row.partition("=")[2].split(os.pathsep):
            if name and Path(name).is_dir():
                yield Path(name).resolve()


@functools.cache
def _include_folders() -> tuple[Path, ...]:
    """Where the compiler looks for headers when nobody tells it more."""
    names: list[str] = []
    for program, language in ((compiler(), "c"), (compiler(is_cpp=True), "c++")):
        said = _ask_compiler(program, "-E", "-v", "-x", language, os.devnull).stderr
        listed = said.partition("search starts here:\n#include <")[2].partition("End of search")[0]
        names += [row.strip() for row in listed.splitlines()[1:]]
    return tuple(Path(name).resolve() for name in names if Path(name).is_dir())


def _ask_compiler(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A question that no candidate has a part in; no answer where there is no compiler."""
    if not program:
        return subprocess.CompletedProcess([], 1, "", "")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, errors="replace",
        env=_CLEAN, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _foreign(workshop: Workshop, library: Path, is_cpp: bool) -> str:
    """Functions and instructions that no kernel needs: whatever the source calls them, they are
    here."""
    nm, objdump = shutil.which("nm"), shutil.which("objdump")
    if nm:
        said = _run(workshop, [nm, "-D", "--undefined-only", library.name], library.parent).output
        names = [row.split()[-1].partition("@")[0] for row in said.splitlines() if row.split()]
        known = _MATHS | _SYMBOLS | _LINKED | (_CPP_SYMBOLS if is_cpp else frozenset())
        other = [name for name in names if name not in known]
        if other:
            return f"takes {', '.join(sorted(other))} from outside"
    if objdump:
        command = [objdump, "-d", "--no-show-raw-insn", library.name]
        said = _run(workshop, command, library.parent).output
        found = sorted({item[1] for item in _INSTRUCTIONS.finditer(said)})
        if found:
            return f"runs the instruction {', '.join(found)}"
    return ""
