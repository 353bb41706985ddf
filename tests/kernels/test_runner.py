"""The bare runner: functions are called there, and nothing else of a candidate's is reached from there."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.kernels.c.build import build_runner
from torchstone.kernels.c.source import CSource, read_c
from torchstone.kernels.sessions.arena import new_file
from torchstone.kernels.sessions.workshop import Workshop

Called = Callable[[str], tuple[str, bytes]]
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


def read(text: str) -> CSource:
    found = read_c(f"C_SOURCE = r'''{text}'''\n")
    assert isinstance(found, CSource), found
    return found


@pytest.fixture
def called(workshop: Workshop) -> Called:
    """Calls `f(out, 4096)` in a runner: how that ended, and what is in `out`."""

    def call(text: str) -> tuple[str, bytes]:
        program, said = build_runner(read(text), workshop)
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
