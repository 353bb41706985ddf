"""The C code repeats its calls under the address and undefined-behaviour sanitizers in silence."""

from __future__ import annotations

import re
from pathlib import Path

from torchstone.core.evidence import Command
from torchstone.core.text import Text
from torchstone.kernels.c.linking import build_driver, has_sanitizers
from torchstone.kernels.c.replay import in_a_row, pack_calls
from torchstone.kernels.c.source import CSource
from torchstone.kernels.gate import Gate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.gate_samples import c_sample
from torchstone.kernels.sessions.calls import Call
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.verdicts.said import both, joined

GATE = Gate(
    name="sanitizers",
    order=90,
    title=Text("Sanitizers", "消毒器（sanitizer）"),
    why=Text(
        "C that reads one element too many, or overflows a signed number, is right until another "
        "compiler or another neighbour in memory.",
        "多读一个元素或有符号数溢出的 C 代码，在换编译器或换内存布局之前都是对的。",
    ),
    remedy=Text("stay inside the buffers and inside the language", "不越出缓冲区，不越出语言规定"),
    implementations=("c",),
    needs_all=True,
    problem="relu",
    good={
        "c": c_sample("""#include <stdint.h>
static float clipped(float x) { return x < 0 ? 0 : x; }
void relu(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = clipped(x[i]);
}
"""),
    },
    bad={
        "c": c_sample("""void relu(const float *x, float *y, long n) {
  float next = n ? x[0] : 0;
  for (long i = 0; i < n; i++) {
    float value = next;
    next = x[i + 1];
    y[i] = value < 0 ? 0 : value;
  }
}
"""),
    },
)

_DIED = tuple(f"killed by {name}" for name in ("SIGABRT", "SIGILL", "SIGTRAP", "SIGFPE", "SIGSEGV"))
"""Ends that the code itself brought about, as with `abort` or `__builtin_trap`."""


@GATE.check
def check(run: Run) -> GateResult:
    source = run.c_source
    assert isinstance(source, CSource)
    folder = run.workshop.scratch()
    driver, said = build_driver(source, run.workshop, folder)
    if said and has_sanitizers(run.workshop, folder):
        what = Text(
            "it cannot be linked into another program: is a function named like one of the C library?",
            "无法链接到另一个程序：是否有函数与 C 库函数同名？",
        )
        return GateResult(GATE.name, "failed", what, line=source.line)
    if said:
        return GateResult(
            GATE.name, "gap",
            Text("the compiler has no sanitizers", "编译器不支持 sanitizer"),
            close=Text("install gcc with libasan and libubsan", "请安装带有 libasan 与 libubsan 的 gcc"),
        )  # fmt: skip
    packed = {
        call.name: pack_calls(source, call.reply.records, _numbered(call)) for call in _chosen(run)
    }
    # a process for each would cost more than all the calls: alone only to name the one that fails
    row = in_a_row(list(packed.values()))
    if not any(_replayed(run, driver, folder, row)):
        return GateResult(GATE.name, "passed")
    for name, calls in {**packed, "all calls in a row": row}.items():
        found, ended = _replayed(run, driver, folder, calls)
        if found:
            texts = [both("{name}: {what}", "{name}：{what}", name=name, what=item)
                     for item in found]  # fmt: skip
            shown = Command("kernel under -fsanitize=address,undefined", 1, "\n".join(found))
            return GateResult(GATE.name, "failed", joined(texts, 3), (shown,), line=source.line)
        if ended and name in packed:
            return GateResult(
                GATE.name, "gap", Text(f"the sanitized run ended early: {ended}",
                                       f"sanitizer 运行提前结束：{ended}"),
                close=Text("run it by hand with gcc -fsanitize=address,undefined",
                           "请用 gcc -fsanitize=address,undefined 手动运行"),
            )  # fmt: skip
    return GateResult(GATE.name, "passed")


def _replayed(run: Run, driver: Path, folder: Path, calls: bytes) -> tuple[list[str], str]:
    """What the sanitizers said of recorded calls, and how the program ended if it did not well."""
    (folder / "calls.bin").write_bytes(calls)
    output, ended = _run(run, str(driver), folder)
    found = _reports(output)
    if ended.startswith(_DIED) and not found:
        found = [f"the call ends by {ended.removeprefix('killed by ')}"]
    return found, ended


def _chosen(run: Run) -> list[Call]:
    """One case of every family: they differ most in what they make the code do."""
    seen: dict[str, Call] = {}
    for call in run.main.calls:
        if call.error is None and call.ended is None and call.reply.records:
            seen.setdefault(f"{call.family} {call.case.resized and call.shapes}", call)
    return list(seen.values())


def _numbered(call: Call) -> list[bytes]:
    """Buffers under the numbers that the records use: the outputs came before them."""
    arguments = [item for record in call.reply.records for item in record.arguments]
    numbers = [item.buffer for item in arguments if item.is_memory]
    shift = min(numbers, default=0)
    return [b""] * shift + call.records


def _run(run: Run, program: str, folder: Path) -> tuple[str, str]:
    """What the program printed, and how it ended when it did not end well."""
    environment = {
        "ASAN_OPTIONS": "detect_leaks=0:hard_rss_limit_mb=1024:symbolize=0:disable_coredump=0",
        "UBSAN_OPTIONS": "print_stacktrace=0", "PATH": "/usr/bin:/bin",
    }  # fmt: skip
    done = run.workshop.run_program(
        [program], folder, seconds=run.timeout_seconds, cpu_seconds=30, environment=environment
    )
    return done.output, done.reason


def _reports(output: str) -> list[str]:
    """What the sanitizers said, without addresses."""
    found = []
    for row in output.splitlines():
        if "runtime error:" in row:
            found.append(row.partition("runtime error:")[2].strip())
        elif "ERROR: AddressSanitizer:" in row:
            found.append(re.sub(r" on .*", "", row.partition("AddressSanitizer:")[2]).strip())
        elif row.startswith(("READ of size", "WRITE of size")):
            found.append(re.sub(r" at .*", "", row))
        elif "is located" in row:
            found.append(re.sub(r"0x[0-9a-f]+( is)? ?", "", re.sub(r" \[.*", "", row)).strip())
    return [re.sub(r"0x[0-9a-f]+", "0x…", item) for item in found][:6]
