"""The bare runner: functions are called there, and nothing else of a candidate's is reached from there."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.kernels.c.linking import build_runner, compiler
from torchstone.kernels.c.source import CSource, Fault, read_c
from torchstone.kernels.sessions.arena import new_file
from torchstone.kernels.sessions.workshop import Workshop

Called = Callable[..., tuple[str, bytes]]
INTERPRETER = 3
"""The part of a program that names who links it."""
HIDDEN = """
#include <stdint.h>
#include <string.h>
static uint64_t hidden(uint64_t n) {{ return n * 0x{bytes}ull; }}
void f(uint8_t *out, long n) {{
  uint64_t (*volatile kept)(uint64_t) = hidden;
  const uint8_t *code = (const uint8_t *)(uintptr_t)kept;
  for (int i = 0; i < 64; i++)
    if (code[i] == 0x0f && code[i + 1] == 0x{second}) {{
      ((void (*)(void))(uintptr_t)(code + i))();
      out[0] = 1;
      return;
    }}
  out[0] = 2;
}}
"""
"""Two bytes inside of a number are an instruction for whoever jumps there; `c3` returns."""

WALK = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char ident[16]; uint16_t kind, machine; uint32_t version; uint64_t entry, segments, sections;
                 uint32_t flags; uint16_t own, size, count; } header;
typedef struct { uint32_t kind, flags; uint64_t offset, place, physical, in_file, in_memory, align; } segment;
typedef struct { int64_t tag; uint64_t value; } item;
typedef struct { uint32_t name; unsigned char info, other; uint16_t section; uint64_t value, size; } symbol;

void f(unsigned char *out, long n) {
  void *(*volatile known)(size_t) = malloc;
  uintptr_t base = (uintptr_t)known & ~(uintptr_t)4095;
  while (memcmp((void *)base, "\177ELF", 4)) base -= 4096;
  out[0] = 1;
  const header *about = (const header *)base;
  const segment *parts = (const segment *)(base + about->segments);
  const item *linked = 0;
  for (int i = 0; i < about->count; i++)
    if (parts[i].kind == 2) linked = (const item *)(base + parts[i].place);
  if (!linked) return;
  out[1] = 1;
  const char *names = 0;
  const symbol *at = 0;
  for (; linked->tag; linked++) {
    if (linked->tag == 5) names = (const char *)linked->value;
    if (linked->tag == 6) at = (const symbol *)linked->value;
  }
  for (; (const char *)at < names; at++) {
    if (memcmp(names + at->name, "dlsym", 6) || !at->value) continue;
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))(base + at->value);
    int (*run)(const char *) = (int (*)(const char *))find(0, "PyRun_SimpleString");
    if (run) out[2] = run("import sys; sys.reached = True") == 0;
    return;
  }
}
"""
"""From the address of malloc to the tables of the library that holds it, to the linker, to Python."""
CPP = r"""
#include <algorithm>
#include <vector>
namespace {{ template <typename T> struct Copy {{ T operator()(T x) const {{ return x; }} }}; }}
{globals}
extern "C" void f(unsigned char *out, long n) {{
  std::vector<unsigned char> made(n, 7);
  std::transform(made.begin(), made.end(), out, Copy<unsigned char>{{}});
}}
"""


def read(text: str, name: str = "C_SOURCE") -> CSource:
    found = read_c(f"{name} = r'''{text}'''\n")
    assert isinstance(found, CSource), found
    return found


@pytest.fixture
def called(workshop: Workshop) -> Called:
    """Calls `f(out, 4096)` in a runner: how that ended, and what is in `out`."""

    def call(text: str, name: str = "C_SOURCE") -> tuple[str, bytes]:
        program, said = build_runner(read(text, name), workshop)
        assert not said, said
        heap, inputs = new_file("heap"), new_file("inputs")
        os.ftruncate(heap, 1 << 16)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            session = workshop.start_program(
                [str(program)], program.parent, shared=[theirs.fileno(), heap, inputs],
                memory_bytes=1 << 30,
            )  # fmt: skip
            theirs.close()
            ours.sendall(struct.pack("<qqqqqq", 0, 2, 2, 0, 0, 4096))
            answered = len(ours.recv(8, socket.MSG_WAITALL)) == 8
        reason = "answered" if answered else session.end().reason
        session.end()
        return reason, os.pread(heap, 4096, 0)

    return call


def test_a_function_is_called_and_shares_memory(called: Called) -> None:
    reason, out = called("void f(unsigned char *out, long n) { out[0] = 7; out[n - 1] = 9; }")
    assert reason == "answered"
    assert (out[0], out[4095]) == (7, 9)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="instructions of x86_64")
@pytest.mark.parametrize(
    ("bytes_", "second", "ending"),
    [("c3310f", "31", "killed by SIGSEGV"), ("c3050f", "05", "killed by SIGSYS")],
    ids=["the counter of cycles", "a system call"],
)
def test_an_instruction_in_a_number_does_not_help(
    called: Called, bytes_: str, second: str, ending: str
) -> None:
    reason, out = called(HIDDEN.format(bytes=bytes_, second=second))
    assert out[0] == 0
    assert reason == ending


def test_no_function_of_python_or_of_a_linker_is_in_the_process(workshop: Workshop) -> None:
    program, said = build_runner(read("void f(int n) { (void)n; }"), workshop)
    assert not said
    data = Path(program).read_bytes()
    assert b"PyRun" not in data
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, start + i * size)[0] for i in range(count)]
    assert INTERPRETER not in kinds


@pytest.mark.parametrize("name", ["__read_chk", "__open_2", "dl_iterate_phdr", "secure_getenv"])
def test_names_that_are_not_listed_are_refused(name: str, workshop: Workshop) -> None:
    text = f"long {name}(long, void *, long, long);\nvoid f(float *x, long n) {{ {name}(0, x, n, n); }}"
    assert f"takes {name} from outside" in build_runner(read(text), workshop)[1]


def test_functions_may_be_called_like_those_of_a_library(called: Called) -> None:
    text = (
        "static void set(unsigned char *p) { *p = 5; }\n"
        "void write(unsigned char *out, long n) { set(out); (void)n; }"
    )
    assert called(text)[1][0] == 5


def test_memory_that_is_not_there_is_asked_for_in_vain(called: Called) -> None:
    text = (
        "#include <stdlib.h>\n"
        "void f(unsigned char *out, long n) { out[0] = malloc(1L << 40) == 0 ? 3 : 4; (void)n; }"
    )
    assert called(text)[1][0] == 3


def test_tables_of_the_linker_lead_from_malloc_to_python_in_its_process_and_nowhere_here(
    called: Called, tmp_path: Path
) -> None:
    (tmp_path / "walk.c").write_text(WALK, "utf-8")
    library = tmp_path / "walk.so"
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", library, tmp_path / "walk.c"], check=True)
    inside = (
        "import ctypes, sys; out = (ctypes.c_ubyte * 8)(); "
        f"ctypes.PyDLL({str(library)!r}).f(out, 8); print(*out[:3], hasattr(sys, 'reached'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", inside], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "1", "1", "True"]
    reason, out = called(WALK)
    assert reason == "answered"
    assert out[:3] == b"\1\0\0"


@pytest.mark.skipif(not compiler(is_cpp=True), reason="no C++ compiler")
def test_cpp_is_called_with_its_templates_and_containers(called: Called) -> None:
    reason, out = called(CPP.format(globals=""), "CPP_SOURCE")
    assert reason == "answered"
    assert set(out) == {7}


@pytest.mark.skipif(not compiler(is_cpp=True), reason="no C++ compiler")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("struct Early { Early(); }; int kept; Early::Early() { kept = 1; } Early early;", "before it is called"),
        ("int chosen(); int kept = chosen(); int chosen() { return 3; }", "before it is called"),
        ("static int &once() { static std::vector<int> kept(3); return kept[0]; } int *use() { return &once(); }",
         "takes __cxa_atexit"),
    ],
    ids=["a constructor", "a number that is computed", "a destructor"],
)  # fmt: skip
def test_nothing_of_cpp_runs_before_it_is_called(text: str, said: str, workshop: Workshop) -> None:
    assert said in build_runner(read(CPP.format(globals=text), "CPP_SOURCE"), workshop)[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<:<:gnu::constructor:>:> void g() {} extern "C" void f(float *x) {}', "attribute in"),
        ('#include <thread>\nextern "C" void f(float *x) {}', "includes <thread>"),
        ("void f(float *x) {}", 'marked extern "C"'),
    ],
)
def test_cpp_is_read_before_it_is_compiled(text: str, said: str) -> None:
    found = read_c(f"CPP_SOURCE = r'''{text}'''\n")
    assert isinstance(found, Fault)
    assert said in found.text
