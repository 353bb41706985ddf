"""C sources: what is read out of a candidate, what is refused, what reaches the sanitizers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from torchstone.kernels import Candidate, verify
from torchstone.kernels.c import linking as build
from torchstone.kernels.c.linking import build_runner
from torchstone.kernels.c.replay import in_a_row, pack_calls
from torchstone.kernels.c.source import CSource, Fault, read_c
from torchstone.kernels.messages.facts import RecordedArgument, RecordedCall
from torchstone.kernels.sessions.workshop import Workshop

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


def test_a_call_may_die_loudly(workshop: Workshop) -> None:
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
    assert build_runner(found, workshop)[1] == ""


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
    ("when", "gate"), [("n < 0", ""), ("n > 888", "families"), (SANITIZED, "")]
)
def test_a_call_that_dies_is_no_answer(when: str, gate: str, workshop: Workshop) -> None:
    verdict = verify("relu", Candidate(DYING % when, "c"), seeds=2, workshop=workshop)
    assert [item.gate for item in verdict.failed] == ([gate] if gate else [])


def test_the_source_must_be_one_string() -> None:
    assert isinstance(read_c("C_SOURCE = 'void f' + '(int n) { }'\n"), Fault)
    assert isinstance(read_c("x = 1\n"), Fault)


def test_functions_from_outside_are_refused(workshop: Workshop) -> None:
    """What the words of the source hide, the symbols of the library show."""
    hidden = source_of("#define glue(a, b) a##b\nlong glue(wri, te)(int, const void *, long);\n"
                       "void f(int n) { glue(wri, te)(1, \"PASS\", 4); }")  # fmt: skip
    assert isinstance(hidden, CSource)
    assert "write" in build_runner(hidden, workshop)[1]
    fine = source_of("#include <math.h>\n#include <string.h>\nvoid f(float *x, long n) "
                     "{ memset(x, 0, n); x[0] = expf(x[1]) + sinf(x[2]) + powf(x[0], x[1]); }")  # fmt: skip
    assert isinstance(fine, CSource)
    assert build_runner(fine, workshop)[1] == ""


def test_overlapping_arguments_share_a_buffer() -> None:
    source = source_of("void f(float *x, float *y, long n) { }")
    assert isinstance(source, CSource)
    arguments = [
        RecordedArgument(start=1000, size=8, buffer=0),
        RecordedArgument(start=1004, size=8, buffer=1),
        RecordedArgument(3),
    ]
    packed = pack_calls(source, [RecordedCall("f", arguments)], [b"abcdefgh", b"EFGHijkl"])
    assert packed.startswith(struct.pack("<qqq", 1, 0, 1) + struct.pack("<q", 12) + b"abcdEFGHijkl")
    assert packed.endswith(struct.pack("<qqqqqqqq", 2, 0, 0, 2, 0, 4, 0, 3))


def test_packs_of_calls_follow_each_other() -> None:
    source = source_of("void f(long n) { }")
    assert isinstance(source, CSource)
    one, two = (
        pack_calls(source, [RecordedCall("f", [RecordedArgument(n)])] * n, []) for n in (1, 2)
    )
    assert in_a_row([one, two]) == struct.pack("<q", 3) + one[8:] + two[8:]
    assert in_a_row([]) == struct.pack("<q", 0)


PAST_THE_END = """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void {name}(const float *x, float *y, long n) {{
  float next = n ? x[0] : 0;
  for (long i = 0; i < n; i++) {{
    float value = next;
    next = x[i + {step}];
    y[i] = value < 0 ? 0 : value;
  }}
}}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.{name}(x, y, x.numel())
        return y
"""


@pytest.mark.parametrize(
    ("name", "step", "said"),
    [
        ("take", "1", "heap-buffer-overflow"),
        ("own_take", "1", "heap-buffer-overflow"),
        ("fread", "1", "named like one of the C library"),
        ("n", "(i + 1 < n)", ""),
    ],
)
def test_no_name_of_a_function_keeps_the_sanitizers_away(
    name: str, step: str, said: str, workshop: Workshop, few_sizes: None
) -> None:
    source = PAST_THE_END.format(name=name, step=step)
    verdict = verify("relu", Candidate(source, "c"), seeds=2, workshop=workshop)
    (found,) = (item for item in verdict.results if item.gate == "sanitizers")
    assert found.status == ("failed" if said else "passed")
    assert said in found.detail.en


@pytest.mark.parametrize("name", ["recording", "_library", "_launches", "function"])
def test_behind_the_library_there_are_its_functions_alone(name: str, workshop: Workshop) -> None:
    """What feeds the sanitizers and counts the launches is not the candidate's to change."""
    source = PAST_THE_END.format(name="relu", step="(i + 1 < n)").replace(
        "        y = ", f"        self.{name} = 1\n        [library][0].{name}\n        y = "
    )
    log = verify("relu", Candidate(source, "c"), seeds=2, workshop=workshop).error_log()
    assert f"the C source has no function {name}; it has relu" in log, log


UNSET = """import torch
from torchstone_kernel import library

C_SOURCE = r'''
#include <stdlib.h>
void relu(const float *x, float *y, long n) {
  static float few[65000];
  float *sums = n < 65000 ? few : malloc(n * sizeof(float));
  if (n < 65000) for (long i = 0; i < n; i++) few[i] = 0;
  for (long i = 0; i < n; i++) sums[i] += x[i];
  for (long i = 0; i < n; i++) y[i] = sums[i] < 0 ? 0 : sums[i];
  if (n >= 65000) free(sums);
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.relu(x, y, x.numel())
        return y
"""


def test_large_memory_holds_no_zeros_by_luck(workshop: Workshop) -> None:
    verdict = verify("relu", Candidate(UNSET, "c"), seeds=2, workshop=workshop)
    assert not verdict.accepted
    assert "got 3.4e+38" in verdict.error_log()


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
         "uses __builtin_ia32_rdtsc (line 2)"),
        ("#define J(a, b) a##b\nlong J(cl, ock)(void); void f(long *n) { n[0] = J(cl, ock)(); }",
         "uses clock (line 2)"),
        ("void f(long *n) { n[0] = __builtin_cpu_supports(\"avx2\"); }", ""),
    ],
)  # fmt: skip
def test_a_clock_is_found_whatever_it_is_called(text: str, said: str, workshop: Workshop) -> None:
    source = source_of(text)
    assert isinstance(source, CSource), source
    assert build_runner(source, workshop)[1] == said


SECRET = "s3cr3t_value_of_the_user"
BODY = "void relu(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i]; }\n"
# Ways to make the compiler read a file: {path} is a private one.
READING = {
    "include": '#include "{path}"\n',
    "line continuation": '#incl\\\nude "{path}"\n',
    "continuation and space": '#incl\\ \nude "{path}"\n',
    "macro": '#define P "{path}"\n#include P\n',
    "pasted macro": "#define S(x) #x\n#define T(x) S(x)\n#include T({path})\n",
    "behind a comment in a string": 'static const char *a = "/*";\n#include "{path}"\nstatic const char *b = "*/";\n',
    "raw string": 'static const char *a = R"(/*)";\n#include "{path}"\nstatic const char *b = R"(*/)";\n',
    "digraph": '%:include "{path}"\n',
    "trigraph": '??=include "{path}"\n',
    "incbin": '__asm__(".section .rodata\\n.global k\\nk: .incbin \\"{path}\\"\\n");\n',
    "pasted incbin": '#define J(a, b) a##b\nJ(__as, m__)(".section .rodata\\n.global k\\nk: .inc" "bin \\"{path}\\"\\n");\n',
}


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "key.txt"
    path.write_text(f"{SECRET} = 1;\n")
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("way", READING)
def test_no_private_file_reaches_a_message_or_the_library(
    way: str, private: Path, workshop: Workshop
) -> None:
    """Once as a candidate, and once past all that is judged from the text: the walls hold alone."""
    text = READING[way].replace("{path}", str(private)) + BODY
    code = f"import torch\nfrom torchstone_kernel import library\n\nC_SOURCE = {text!r}\n\n\n"
    code += "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        y = torch.empty_like(x)\n        library.relu(x, y, x.numel())\n        return y\n"
    verdict = verify("relu", Candidate(code, "c"), seeds=2, workshop=workshop)
    assert not verdict.accepted
    assert {item.gate for item in verdict.failed} <= {"policy", "build"}
    assert SECRET not in verdict.error_log() + verdict.report().to_json()
    unjudged = CSource(text, 1, {"relu": ["float*", "float*", "long"]})
    folder = workshop.scratch()
    (folder / "kernel.c").write_text(text)
    arguments = ("-shared", "-fPIC", "-o", "kernel.so", "kernel.c")
    said = build._compile(unjudged, workshop, folder, "-trigraphs", *arguments)
    library = folder / "kernel.so"
    assert SECRET not in said
    assert not library.exists() or SECRET.encode() not in library.read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('#define J(a, b) a##b\nvoid f(int n) { J(as, m)("nop"); }', "uses asm"),
        ('#define A __attri##bute__\n__attribute__((section(".text"))) const char c[] = "x";\nvoid f(int n) { }',
         "uses the attribute section"),
        ('#define J(a, b) a##b\n#define K(a, b) J(a, b)\nK(__attri, bute__)((K(sec, tion)(".text"))) const char c[] = "x";\nvoid f(int n) { }',
         "uses the attribute section"),
        ('void g(void); void f(int n) { g(); }\nvoid g(void) __attribute__((\n  alias\n("f")));', "uses the attribute alias"),
        ("void f(int n) { void g(void) { n++; } void (*volatile p)(void) = g; p(); }",
         "needs a stack that can be executed"),
        ('#define P(x) _Pragma(x)\nP("weak f")\nvoid f(int n) { }', "uses #pragma weak"),
    ],
)  # fmt: skip
def test_the_source_is_judged_after_the_preprocessor(
    text: str, said: str, workshop: Workshop
) -> None:
    source = source_of(text)
    found = source.text if isinstance(source, Fault) else build_runner(source, workshop)[1]
    assert said in found


def test_attributes_and_pragmas_of_ordinary_kernels_are_fine(workshop: Workshop) -> None:
    source = source_of("""#include <immintrin.h>
#include <math.h>
#include <tgmath.h>
#include <assert.h>
#include <string.h>
typedef float v8 __attribute__((vector_size(32), aligned(32)));
static inline __attribute__((always_inline)) float one(float x) { return fabs(x); }
__attribute__((target("avx2"))) void f(const float *x, float *y, long n) {
  assert(n >= 0);
#pragma GCC ivdep
  for (long i = 0; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_max_ps(_mm256_loadu_ps(x + i), _mm256_setzero_ps()));
#pragma GCC unroll 4
  for (long i = 0; i < n; i++) y[i] = one(y[i]);
}
""")
    assert isinstance(source, CSource), source
    assert build_runner(source, workshop)[1] == ""


def test_a_compiler_error_names_the_line_of_the_candidate(workshop: Workshop) -> None:
    source = read_c(
        "import torch\n\nC_SOURCE = r'''\nvoid f(float *x) {\n  x[0] = nothing;\n}\n'''\n"
    )
    assert isinstance(source, CSource)
    assert build_runner(source, workshop)[1].startswith("line 5: error: ‘nothing’ undeclared")
