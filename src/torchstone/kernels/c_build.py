"""C candidates: their source is read out of the Python file, checked, and compiled here.

The candidate's own process can start no program, so the compiler runs before it, on the source
alone: as a library for the candidate, and once more with sanitizers beside a driver that repeats
recorded calls.
"""

from __future__ import annotations

import ast
import re
import resource
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADERS = ("math.h", "stdint.h", "stddef.h", "string.h", "stdbool.h", "float.h", "limits.h",
           "stdlib.h", "immintrin.h", "tgmath.h", "assert.h", "inttypes.h", "stdalign.h")  # fmt: skip
_COMPILE_SECONDS = 60
# `abort` and `assert` stay: a call that dies is never taken for an answer, one that exits might be
_FORBIDDEN = re.compile(
    r"\b(asm|__asm|__asm__|system|fork|vfork|popen|exec\w*|dlopen|dlsym|syscall|fopen|open|"
    r"socket|getenv|mmap|ptrace|pthread_\w+|signal|raise|exit|_exit|_Exit|quick_exit|atexit|longjmp|setjmp)\b\s*[(\"]"
    r"|\b(asm|__asm__)\b|__attribute__\s*\(\(\s*(constructor|destructor|ifunc)"
)
_CLOCKS = re.compile(
    r"\b\w*(rdtscp?|rdpmc|rdrand\w*|rdseed\w*|readcyclecounter|readsteadycounter|"
    r"rdpid|arm_rsr\w*|thread_pointer)\b|\b(clock\w*|times?|timespec_get|gettimeofday|"
    r"getrusage|getcpu|sched_\w+|getauxval|rand|random|drand48|arc4random\w*|getrandom|getpid)\s*\("
    r"|\b__(DATE|TIME|TIMESTAMP)__\b"
)
"""What tells one call from another, or one machine from another, without looking at the inputs."""
_INSTRUCTIONS = re.compile(
    r"^\s*[0-9a-f]+:\s.*?\b(rdtscp?|rdpmc|rdrand|rdseed|rdpid|syscall|sysenter|int\s+\$0x80|"
    r"svc|cntvct\w*|cntpct\w*|pmccntr\w*|rdtime|rdcycle)\b",
    re.M,
)
_PROTOTYPE = re.compile(
    r"(?:^|[;}])\s*((?:static\s+|inline\s+|extern\s+)*)(void)\s+(\w+)\s*\(([^()]*)\)\s*\{", re.M
)
_SYMBOLS = re.compile(
    r"(__?\w*(chk|fortify)\w*|mem\w+|str\w+|malloc|calloc|realloc|free|qsort|abs|labs|llabs|"
    r"__stack_chk_fail|__cxa_finalize|__gmon_start__|_ITM_\w+|aligned_alloc|posix_memalign|div|ldiv|rand_r|"
    r"abort|__assert_fail)"
)


@dataclass(frozen=True, slots=True)
class CSource:
    """The C part of a candidate."""

    text: str
    line: int
    """Line of the Python file on which the string begins."""
    prototypes: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a C source cannot be used."""

    text: str
    line: int = 0


def read_c(source: str) -> CSource | Fault:
    """The string `C_SOURCE` of a candidate, and the functions that Python may call."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        if node.targets[0].id != "C_SOURCE":
            continue
        value = node.value
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            return Fault("C_SOURCE is not one plain string", node.lineno)
        return _checked(value.value, node.lineno)
    return Fault("no string C_SOURCE at the top of the file")


def _checked(text: str, line: int) -> CSource | Fault:
    bare = _without_comments(text)
    for number, row in enumerate(bare.splitlines()):
        directive = re.match(r"\s*#\s*(\w+)(.*)", row)
        if directive and directive[1] == "include":
            name = re.fullmatch(r'\s*[<"]([\w./]+)[>"]\s*', directive[2])
            if name is None or name[1] not in HEADERS:
                return Fault(f"includes {directive[2].strip()}", line + number)
        if directive and directive[1] in ("include_next", "embed", "import"):
            return Fault(f"#{directive[1]}", line + number)
        found = _FORBIDDEN.search(row) or _CLOCKS.search(row)
        if found:
            return Fault(f"uses {found[0].strip(' (')}", line + number)
    if "??=" in text or "%:" in bare:
        return Fault("writes # in another way", line)
    prototypes: dict[str, list[str]] = {}
    for found in _PROTOTYPE.finditer(re.sub(r"^\s*#.*$", "", bare, flags=re.M)):
        if "static" in found[1]:
            continue
        types = _types(found[4])
        if isinstance(types, Fault):
            return Fault(f"{found[3]}: {types.text}", line)
        prototypes[found[3]] = types
    if not prototypes:
        return Fault("no function that returns void and is not static", line)
    return CSource(text, line, prototypes)


def _without_comments(text: str) -> str:
    """The text with comments blanked and lines kept."""
    text = re.sub(r"\\\n", " \n", text)
    return re.sub(
        r"/\*.*?\*/|//[^\n]*", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S
    )


_KNOWN = {
    "float", "double", "int", "long", "long long", "size_t", "unsigned", "unsigned int", "char",
    "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t",
    "ptrdiff_t", "bool", "_Bool", "unsigned char", "signed char", "unsigned long", "short",
}  # fmt: skip
_POINTED = _KNOWN | {"void", "_Float16"}


def _types(parameters: str) -> list[str] | Fault:
    """Each parameter as the name of its type, with * for a pointer."""
    if parameters.strip() in ("", "void"):
        return []
    found = []
    for part in parameters.split(","):
        words = re.sub(r"\b(const|restrict|__restrict__|__restrict|volatile|register)\b", " ", part)
        pointer = "*" in words or "[" in words
        words = re.sub(r"\[[^\]]*\]", " ", words).replace("*", " ")
        names = words.split()
        base = " ".join(names[:-1] if len(names) > 1 and " ".join(names) not in _KNOWN else names)
        base = {"long int": "long", "long long int": "long long"}.get(base, base)
        if base not in (_POINTED if pointer else _KNOWN) or part.count("*") > 1:
            return Fault(f"a parameter of type {' '.join(part.split())!r} cannot be passed")
        found.append(base + "*" if pointer else base)
    return found


def compiler() -> str:
    """The system's C compiler; empty when there is none."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or ""


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_COMPILE_SECONDS, _COMPILE_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))


def _compile(arguments: Sequence[str], folder: Path) -> str:
    """Run the compiler; what it says when it fails, else nothing."""
    try:
        done = subprocess.run(
            [compiler(), *arguments], cwd=folder, capture_output=True, text=True, check=False,
            timeout=_COMPILE_SECONDS, preexec_fn=_limits, errors="replace",
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TMPDIR": str(folder)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "the compiler did not end"
    return "" if done.returncode == 0 else done.stderr or "the compiler failed"


def build_library(source: CSource, folder: Path) -> tuple[Path, str]:
    """The compiled library, and what the compiler says when there is none."""
    (folder / "kernel.c").write_text(source.text, "utf-8")
    target = folder / "kernel.so"
    said = _compile(
        ["-std=gnu11", "-O2", "-shared", "-fPIC", "-o", target.name, "kernel.c", "-lm"], folder
    )
    return target, said or _foreign(target) or _asked(target)


def _asked(library: Path) -> str:
    """Instructions that ask for more than memory: whatever the source calls them, they are here."""
    program = shutil.which("objdump")
    if program is None:
        return ""
    done = subprocess.run(
        [program, "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    found = sorted({item[1] for item in _INSTRUCTIONS.finditer(done.stdout)})
    return f"runs the instruction {', '.join(found)}" if found else ""


def _foreign(library: Path) -> str:
    """Functions that the library takes from elsewhere and that no kernel needs."""
    program = shutil.which("nm")
    if program is None:
        return ""
    done = subprocess.run(
        [program, "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=False
    )  # fmt: skip
    names = [
        line.split()[-1].partition("@")[0] for line in done.stdout.splitlines() if line.split()
    ]
    maths = re.compile(r"(f?(max|min|abs|dim|ma|mod)|exp(2|m1|10)?|log(2|10|1p|b)?|pow|sqrt|cbrt|"
                       r"hypot|a?(sin|cos|tan)h?|atan2|sincos|erfc?|[lt]gamma|ceil|floor|trunc|"
                       r"l?l?r(ound|int)|nearbyint|round|scalbl?n|ldexp|frexp|modf|copysign|"
                       r"remainder|fdim|fma|fmod|fmax|fmin|fabs|ilogb|nan|signgam)[fl]?(_r)?"
                       r"(_finite)?")  # fmt: skip
    other = [name for name in names if not maths.fullmatch(name) and not _SYMBOLS.fullmatch(name)]
    return f"takes {', '.join(sorted(other))} from outside" if other else ""


SANITIZE = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g", "-O1"]


def build_driver(source: CSource, folder: Path) -> tuple[Path, str]:
    """A program that repeats recorded calls under the sanitizers."""
    (folder / "kernel.c").write_text(source.text, "utf-8")
    (folder / "driver.c").write_text(_driver(source), "utf-8")
    target = folder / "driver"
    return target, _compile(["-std=gnu11", *SANITIZE, "-o", target.name, "driver.c", "-lm"], folder)


def _driver(source: CSource) -> str:
    """main() that reads calls from a file: buffers are allocated exactly as large as they are."""
    cases = []
    for number, (name, types) in enumerate(source.prototypes.items()):
        given = ", ".join(
            f"(void *)p[{i}]"
            if kind.endswith("*")
            else f"({kind})(is_float[{i}] ? d[{i}] : n[{i}])"
            for i, kind in enumerate(types)
        )
        cases.append(f"case {number}: {name}({given}); break;")
    return f"""#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include "kernel.c"
static void take(void *to, size_t size, FILE *from) {{
  if (size && fread(to, 1, size, from) != size) _Exit(3);
}}
int main(void) {{
  FILE *file = fopen("calls.bin", "rb");
  if (!file) return 3;
  int64_t calls, function, count, buffers;
  take(&calls, 8, file);
  for (int64_t call = 0; call < calls; call++) {{
    void *owned[64]; char *p[64]; double d[64]; int64_t n[64]; int is_float[64];
    take(&function, 8, file); take(&buffers, 8, file);
    for (int64_t i = 0; i < buffers; i++) {{
      int64_t size; take(&size, 8, file);
      owned[i] = malloc(size ? size : 1); take(owned[i], size, file);
    }}
    take(&count, 8, file);
    for (int64_t i = 0; i < count; i++) {{
      int64_t kind; take(&kind, 8, file); is_float[i] = kind == 1;
      if (kind == 2) {{ int64_t which, offset; take(&which, 8, file); take(&offset, 8, file);
        p[i] = (char *)owned[which] + offset; }}
      else if (kind == 1) take(&d[i], 8, file);
      else take(&n[i], 8, file);
    }}
    switch (function) {{ {" ".join(cases)} }}
    for (int64_t i = 0; i < buffers; i++) free(owned[i]);
  }}
  return 0;
}}
"""


def pack_calls(source: CSource, records: list[dict[str, Any]], buffers: Sequence[bytes]) -> bytes:
    """Recorded calls as the driver reads them; arguments that overlap share a buffer."""
    names = list(source.prototypes)
    parts = [struct.pack("<q", len(records))]
    for record in records:
        arguments = record["arguments"]
        spans = [
            (a["start"], a["start"] + a["size"], a["buffer"]) for a in arguments if "start" in a
        ]
        merged = _merged(spans, buffers)
        parts.append(struct.pack("<qq", names.index(record["function"]), len(merged)))
        for _, data in merged:
            parts += [struct.pack("<q", len(data)), bytes(data)]
        parts.append(struct.pack("<q", len(arguments)))
        for item in arguments:
            if "start" in item:
                which = next(i for i, (low, data) in enumerate(merged)
                             if low <= item["start"] <= low + len(data)
                             and (item["start"] + item["size"] <= low + len(data)))  # fmt: skip
                parts.append(struct.pack("<qqq", 2, which, item["start"] - merged[which][0]))
            elif isinstance(item["scalar"], float):
                parts.append(struct.pack("<qd", 1, item["scalar"]))
            else:
                parts.append(struct.pack("<qq", 0, item["scalar"]))
    return b"".join(parts)


def in_a_row(packed: Sequence[bytes]) -> bytes:
    """Several packs of calls as one."""
    size = struct.calcsize("<q")
    count = sum(struct.unpack("<q", item[:size])[0] for item in packed)
    return b"".join([struct.pack("<q", count), *(item[size:] for item in packed)])


def _merged(
    spans: list[tuple[int, int, int]], buffers: Sequence[bytes]
) -> list[tuple[int, bytearray]]:
    """Buffers by address, overlapping ones made into one."""
    found: list[tuple[int, bytearray]] = []
    for low, high, which in sorted(set(spans)):
        data = buffers[which]
        if found and low < found[-1][0] + len(found[-1][1]):
            base, whole = found[-1]
            whole.extend(b"\0" * max(0, high - base - len(whole)))
            whole[low - base : high - base] = data
        else:
            found.append((low, bytearray(data)))
    return found
