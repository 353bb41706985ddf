"""C sources: what is read out of a candidate, what is refused, what reaches the sanitizers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from torchstone.kernels import Candidate, verify
from torchstone.kernels.c_build import (
    CSource,
    Fault,
    build_library,
    in_a_row,
    pack_calls,
    read_c,
)
from torchstone.kernels.workshop import Workshop

SANITIZED = """
#ifdef __SANITIZE_ADDRESS__
1
#else
0
#endif
"""


def source_of(text: str) -> CSource | Fault:
    return read_c(f"C_SOURCE = {text!r}\n")


def test_prototypes_are_read() -> None:
    found = source_of("""#include <math.h>
/* void not_me(int x) { } */
static void helper(float *x) { x[0] = 0; }
void scale(const float *restrict x, float y[], long n, double factor) { helper(y); }
void whole(const int64_t* a, unsigned char *b, long long n,
           int flag)
{ }
""")
    assert isinstance(found, CSource)
    assert found.prototypes == {
        "scale": ["float*", "float*", "long", "double"],
        "whole": ["int64_t*", "unsigned char*", "long long", "int"],
    }


@pytest.mark.parametrize(
    "text",
    [
        '#include "/etc/passwd"\nvoid f(int n) { }',
        "#include <stdio.h>\nvoid f(int n) { }",
        "#  include <unistd.h>\nvoid f(int n) { }",
        "#define H <stdio.h>\n#include H\nvoid f(int n) { }",
        "%:include <stdio.h>\nvoid f(int n) { }",
        'void f(int n) { __asm__("nop"); }',
        'void f(int n) { asm volatile ("nop"); }',
        "void f(int n) { system(0); }",
        "void f(long *n) { n[0] = __builtin_ia32_rdtsc(); }",
        "#include <immintrin.h>\nvoid f(long *n) { n[0] = _rdtsc(); }",
        "void f(long *n) { n[0] = __builtin_readcyclecounter(); }",
        "long time(long *); void f(long *n) { n[0] = time(0); }",
        "void f(unsigned *n) { __builtin_ia32_rdrand32_step(n); }",
        "#include <stdlib.h>\nvoid f(int n) { if (n) exit(0); }",
        "#include <stdlib.h>\nvoid f(int n) { _Exit(0); }",
        "__attribute__((constructor)) void f(int n) { }",
        "int f(int n) { return n; }",
        "void f(struct s n) { }",
        "void f(float **x) { }",
        "",
    ],
)
def test_refused(text: str) -> None:
    assert isinstance(source_of(text), Fault)


def test_a_call_may_die_loudly(tmp_path: Path) -> None:
    found = source_of("""#include <stdlib.h>
#include <assert.h>
void f(float *x, long n) {
  float *p = malloc(sizeof(float) * (n > 0 ? n : 1));
  if (!p) abort();
  assert(n >= 0);
  free(p);
}
""")
    assert isinstance(found, CSource)
    assert build_library(found, tmp_path)[1] == ""


DYING = """import torch
from torchstone_kernel import library

C_SOURCE = r'''
#include <stdlib.h>
void relu(const float *x, float *y, long n) {
  if (%s) abort();
  for (long i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.relu(x, y, x.numel())
        return y
"""


@pytest.mark.parametrize(
    ("when", "gate"), [("n < 0", ""), ("n > 888", "families"), (SANITIZED, "sanitizers")]
)
def test_a_call_that_dies_is_no_answer(when: str, gate: str, workshop: Workshop) -> None:
    verdict = verify("relu", Candidate(DYING % when, "c"), seeds=2, workshop=workshop)
    assert [item.gate for item in verdict.failed] == ([gate] if gate else [])


def test_the_source_must_be_one_string() -> None:
    assert isinstance(read_c("C_SOURCE = 'void f' + '(int n) { }'\n"), Fault)
    assert isinstance(read_c("x = 1\n"), Fault)


def test_functions_from_outside_are_refused(tmp_path: Path) -> None:
    """What the words of the source hide, the symbols of the library show."""
    hidden = source_of("#define glue(a, b) a##b\nlong glue(wri, te)(int, const void *, long);\n"
                       "void f(int n) { glue(wri, te)(1, \"PASS\", 4); }")  # fmt: skip
    assert isinstance(hidden, CSource)
    assert "write" in build_library(hidden, tmp_path)[1]
    fine = source_of("#include <math.h>\n#include <string.h>\nvoid f(float *x, long n) "
                     "{ memset(x, 0, n); x[0] = expf(x[1]) + sinf(x[2]) + powf(x[0], x[1]); }")  # fmt: skip
    assert isinstance(fine, CSource)
    assert build_library(fine, tmp_path)[1] == ""


def test_overlapping_arguments_share_a_buffer() -> None:
    source = source_of("void f(float *x, float *y, long n) { }")
    assert isinstance(source, CSource)
    arguments = [
        {"start": 1000, "size": 8, "buffer": 0},
        {"start": 1004, "size": 8, "buffer": 1},
        {"scalar": 3},
    ]
    packed = pack_calls(
        source, [{"function": "f", "arguments": arguments}], [b"abcdefgh", b"EFGHijkl"]
    )
    assert packed.startswith(struct.pack("<qqq", 1, 0, 1) + struct.pack("<q", 12) + b"abcdEFGHijkl")
    assert packed.endswith(struct.pack("<qqqqqqqq", 2, 0, 0, 2, 0, 4, 0, 3))


def test_packs_of_calls_follow_each_other() -> None:
    source = source_of("void f(long n) { }")
    assert isinstance(source, CSource)
    one, two = (
        pack_calls(source, [{"function": "f", "arguments": [{"scalar": n}]}] * n, [])
        for n in (1, 2)
    )
    assert in_a_row([one, two]) == struct.pack("<q", 3) + one[8:] + two[8:]
    assert in_a_row([]) == struct.pack("<q", 0)


SCRATCH = """import torch
from torchstone_kernel import library

C_SOURCE = r'''
static float scratch[44];
void relu(const float *x, float *y, long rows, long width) {
  for (long i = 0; i < rows; i++) {
    for (long j = 0; j < width; j++) scratch[j] = x[i * width + j] < 0 ? 0 : x[i * width + j];
    for (long j = 0; j < width; j++) y[i * width + j] = scratch[j];
  }
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] > 46:
            raise ValueError("up to 46 columns")
        x = x.contiguous()
        y = torch.empty_like(x)
        library.relu(x, y, x.shape[0], x.shape[1])
        return y
"""


def test_all_calls_are_repeated_in_a_row_and_the_one_that_fails_is_named(
    workshop: Workshop,
) -> None:
    log = verify("relu", Candidate(SCRATCH, "c"), seeds=2, workshop=workshop).error_log()
    assert "[sanitizers] failed: lengths seed" in log, log
    assert any(f"×{width})" in log for width in (45, 46)), log


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#define JOIN(a, b) a##b\nvoid f(long *n) { n[0] = JOIN(__builtin_ia32_rd, tsc)(); }",
         "runs the instruction rdtsc"),
        ("#define J(a, b) a##b\nlong J(cl, ock)(void); void f(long *n) { n[0] = J(cl, ock)(); }",
         "takes clock from outside"),
        ("void f(long *n) { n[0] = __builtin_cpu_supports(\"avx2\"); }", ""),
    ],
)  # fmt: skip
def test_a_clock_is_found_whatever_it_is_called(text: str, said: str, tmp_path: Path) -> None:
    source = source_of(text)
    assert isinstance(source, CSource), source
    assert build_library(source, tmp_path)[1] == said
