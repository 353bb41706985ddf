"""The C or C++ source of a candidate: read out of the Python file and judged, nothing is run.

It is judged twice: as it is written, and again after the preprocessor, when macros can hide
nothing any more. What is compiled is the text that was judged the second time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

HEADERS = ("math.h", "stdint.h", "stddef.h", "string.h", "stdbool.h", "float.h", "limits.h",
           "stdlib.h", "immintrin.h", "tgmath.h", "assert.h", "inttypes.h", "stdalign.h")  # fmt: skip
CPP_HEADERS = (*HEADERS, "algorithm", "array", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdlib", "cstring",
               "functional", "limits", "numeric", "tuple", "type_traits", "utility", "vector")  # fmt: skip
NAME = "kernel.c"
# `abort` and `assert` stay: a call that dies is never taken for an answer, one that exits might be
_FORBIDDEN = re.compile(
    r"\b(system|fork|vfork|popen|exec\w*|dlopen|dlsym|syscall|fopen|open|"
    r"socket|getenv|mmap|mprotect|ptrace|pthread_\w+|signal|raise|exit|_exit|_Exit|quick_exit|"
    r"atexit|longjmp|setjmp)\b\s*\("
    r"|\b(asm|__asm|__asm__)\b|\b__builtin___clear_cache\b"
)
_CLOCKS = re.compile(
    r"\b\w*(rdtscp?|rdpmc|rdrand\w*|rdseed\w*|readcyclecounter|readsteadycounter|"
    r"rdpid|arm_rsr\w*|thread_pointer)\b|\b(clock\w*|times?|timespec_get|gettimeofday|"
    r"getrusage|getcpu|sched_\w+|getauxval|rand|random|drand48|arc4random\w*|getrandom|getpid)\s*\("
    r"|\b__(DATE|TIME|TIMESTAMP)__\b"
)
"""What tells one call from another, or one machine from another, without looking at the inputs."""
_ATTRIBUTES = frozenset(
    "aligned packed unused used always_inline noinline gnu_inline hot cold const pure vector_size "
    "target optimize may_alias nonnull flatten fallthrough warn_unused_result noreturn nothrow "
    "leaf malloc alloc_size assume_aligned simd artificial mode deprecated returns_nonnull "
    "no_sanitize noclone".split()
)
"""Attributes that say how code is compiled; `section`, `alias` or `constructor` say where it
goes, what it stands for or when it runs, and are not among them."""
_PRAGMAS = re.compile(
    r"\s*(STDC\b|once\b|omp\s+simd\b|"
    r"GCC\s+(ivdep|unroll|optimize|target|push_options|pop_options|reset_options|diagnostic)\b|"
    r"clang\s+(loop|fp|diagnostic)\b|unroll\b)"
)
_PROTOTYPE = re.compile(
    r"(?:^|[;}])\s*((?:static\s+|inline\s+|extern\s+|__attribute__\s*\(\([^;{}]*?\)\)\s*)*)(void)\s+(\w+)\s*\(([^()]*)\)\s*\{",
    re.M,
)
_EXPORTED = re.compile(r'\bextern\s+"C"\s+(?=void\b)')
"""C++ hands these functions to Python; all others have names of the compiler's own making."""
_STRINGS = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_COMMENTS = re.compile(rf"({_STRINGS})|/\*.*?\*/|//[^\n]*", re.S)
_MARKER = re.compile(r'#\s*(\d+)\s+"((?:\\.|[^"\\])*)"')


@dataclass(frozen=True, slots=True)
class CSource:
    """The C or C++ part of a candidate."""

    text: str
    line: int
    """Line of the Python file on which the string begins."""
    prototypes: dict[str, list[str]]
    is_cpp: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a C source cannot be used."""

    text: str
    line: int = 0


def read_c(source: str) -> CSource | Fault:
    """The string `C_SOURCE` or `CPP_SOURCE` of a candidate, and the functions that Python may call."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if name not in ("C_SOURCE", "CPP_SOURCE"):
            continue
        value = node.value
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            return Fault(f"{name} is not one plain string", node.lineno)
        return _checked(value.value, node.lineno, name == "CPP_SOURCE")
    return Fault("no string C_SOURCE or CPP_SOURCE at the top of the file")


def _checked(text: str, line: int, is_cpp: bool) -> CSource | Fault:
    joined = _with_lines_joined(text)
    if "\0" in text or "??" in text or re.search(r'\b(u8|[uUL])?R"', joined):
        return Fault("writes a trigraph, a raw string or a zero byte", line)
    bare = _without_comments(joined)
    if "%:" in bare:
        return Fault("writes # in another way", line)
    for number, row in enumerate(bare.splitlines()):
        said = _directive_fault(row, CPP_HEADERS if is_cpp else HEADERS) or _words_fault(row)
        if said:
            return Fault(said, line + number)
    fault = _attribute_fault(list(enumerate(bare.splitlines(), line)))
    return fault or _with_prototypes(text, bare, line, is_cpp)


def _directive_fault(row: str, headers: tuple[str, ...]) -> str:
    """Why a line that begins with # is refused; empty for all others."""
    found = re.match(r"\s*#\s*(\w*)(.*)", row)
    if found is None:
        return ""
    name, rest = found[1], found[2].strip()
    if name == "include":
        header = re.fullmatch(r'[<"]([\w./]+)[>"]', rest)
        return "" if header and header[1] in headers else f"includes {rest}"
    if name == "pragma":
        return "" if _PRAGMAS.match(rest) else f"uses #pragma {rest}"
    if name.isdigit() or name in ("line", "include_next", "embed", "import", "ident", "assert"):
        return f"uses #{name}"
    return ""


def _words_fault(row: str) -> str:
    found = _FORBIDDEN.search(row) or _CLOCKS.search(row)
    if found:
        return f"uses {found[0].strip(' (')}"
    if re.search(r"(\[|<:)\s*(\[|<:)", row):
        return "uses an attribute in [[ ]]"
    return ""


def preprocessed_fault(text: str, source: CSource) -> Fault | None:
    """Why the preprocessed text is refused: judged is what stands in the candidate's own lines."""
    own = list(_own_lines(text))
    for number, row in own:
        said = _words_fault(row)
        pragma = re.match(r"\s*#\s*pragma\s(.*)", row)
        if pragma and not _PRAGMAS.match(pragma[1]):
            said = f"uses #pragma {pragma[1].strip()[:60]}"
        if said:
            return Fault(said, source.line + number - 1)
    return _attribute_fault([(source.line + number - 1, row) for number, row in own])


def _attribute_fault(rows: list[tuple[int, str]]) -> Fault | None:
    for line, name in _attributes(rows):
        if name.strip("_") not in _ATTRIBUTES:
            return Fault(f"uses the attribute {name}", line)
    return None


def _own_lines(text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and lines that come from the candidate's file, strings blanked."""
    number, ours = 1, False
    for row in text.splitlines():
        marker = _MARKER.match(row)
        if marker:
            number, ours = int(marker[1]), marker[2] == NAME
            continue
        if ours:
            yield number, re.sub(_STRINGS, '""', row)
        number += 1


def _attributes(rows: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Names inside every `__attribute__((…))`, whatever lines it is spread over."""
    starts, text = [], ""
    for number, row in rows:
        starts.append((len(text), number))
        text += row + "\n"
    for found in re.finditer(r"\b__attribute(?:__)?\b", text):
        line = max((item for item in starts if item[0] <= found.start()), key=lambda item: item[0])
        depth, position = 0, found.end()
        while position < len(text) and (depth or text[position] != ";"):
            character = text[position]
            depth += (character == "(") - (character == ")")
            if depth == 2 and (character.isalpha() or character == "_"):
                word = re.match(r"\w+", text[position:])
                assert word is not None
                yield line[1], word[0]
                position += len(word[0]) - 1
            position += 1
            if depth == 0 and character == ")":
                break


def _with_prototypes(text: str, bare: str, line: int, is_cpp: bool) -> CSource | Fault:
    prototypes: dict[str, list[str]] = {}
    if is_cpp:  # only what is marked, and marked as C is
        bare = ";".join(["", *_EXPORTED.split(bare)[1:]]).replace("\n", " ")
    for found in _PROTOTYPE.finditer(re.sub(r"^\s*#.*$", "", bare, flags=re.M)):
        if "static" in found[1]:
            continue
        types = _types(found[4])
        if isinstance(types, Fault):
            return Fault(f"{found[3]}: {types.text}", line)
        prototypes[found[3]] = types
    if not prototypes:
        wanted = 'marked extern "C"' if is_cpp else "not static"
        return Fault(f"no function that returns void and is {wanted}", line)
    return CSource(text, line, prototypes, is_cpp)


def _with_lines_joined(text: str) -> str:
    """Lines that end in a backslash joined with the next, as the compiler does before it looks
    for directives, spaces behind the backslash or not; lines after them keep their numbers."""
    rows: list[str] = []
    begun, waiting = "", 0
    for row in text.split("\n"):
        continued = re.fullmatch(r"(.*)\\[ \t\r\f\v]*", row, re.S)
        begun += continued[1] if continued else row
        waiting += 1
        if not continued:
            rows += [begun, *[""] * (waiting - 1)]
            begun, waiting = "", 0
    return "\n".join([*rows, begun] if begun else rows)


def _without_comments(text: str) -> str:
    """The text with comments blanked, strings and lines kept."""
    return _COMMENTS.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


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
