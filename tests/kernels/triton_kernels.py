"""Kernels that are run twice, their programs one after the other and side by side; prints what differs."""

from __future__ import annotations

import contextlib
import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.kits import triton_kit


@triton.jit
def loops(x, y, n, size: tl.constexpr):
    """Loops of another length, and a condition, in each program."""
    p = tl.program_id(0)
    total = tl.zeros((size,), tl.float32)
    for k in range(p % 5 + 1):
        total += tl.load(x + k * size + tl.arange(0, size))
    if p % 2 == 0:
        total = total * 2
    tl.store(y + p * size + tl.arange(0, size), total)


@triton.jit
def rows(x, y, n, size: tl.constexpr):
    """Few programs that walk over many rows: the loop starts elsewhere in each."""
    for row in tl.range(tl.program_id(0), n // size, tl.num_programs(0)):
        at = row * size + tl.arange(0, size)
        value = tl.load(x + at)
        value = tl.exp(value - tl.max(value, axis=0))
        tl.store(y + at, value / tl.sum(value, axis=0))


@triton.jit
def product(x, y, n, size: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, size)
    total = tl.zeros((size, size), tl.float32)
    for k in range(4):
        a = tl.load(x + (i * size + at)[:, None] * 4 * size + (k * size + at)[None, :])
        b = tl.load(x + (j * size + at)[None, :] * 4 * size + (k * size + at)[:, None])
        total = tl.dot(a, b, total)
    tl.store(y + (i * size + at)[:, None] * 4 * size + (j * size + at)[None, :], total.T)


@triton.jit
def larger(a, i, b, j):
    take = (b > a) | ((b == a) & (j < i))
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def scans(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    value = tl.load(x + p * size + tl.arange(0, size))
    best, place = tl.reduce((value, tl.arange(0, size)), 0, larger)
    first = tl.argmax(value, axis=0)
    running = tl.cumsum(value, 0) + tl.associative_scan(value, 0, tl.standard._elementwise_max)
    back = tl.cumsum(value, 0, reverse=True)
    tl.store(y + p * size + tl.arange(0, size), running + back + best + place + first)


@triton.jit
def shapes(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    value = tl.load(x + p * size + tl.arange(0, size))
    left, right = tl.split(tl.reshape(value, (size // 2, 2)))
    both = tl.join(right, tl.abs(left).to(tl.float16).to(tl.float32))
    total = tl.sum(tl.trans(both), axis=1, keep_dims=True) + tl.max(value)
    turned = tl.reshape(tl.trans(both) + total, (size,))
    tl.store(y + p * size + tl.arange(0, size), turned + tl.rand(p, tl.arange(0, size)))


@triton.jit
def sums(x, y, n, size: tl.constexpr):
    """Every program adds to the same elements."""
    p = tl.program_id(0)
    tl.atomic_add(y + tl.arange(0, size), tl.load(x + p * size + tl.arange(0, size)))


@triton.jit
def described(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    tl.store(y + p * size + tl.arange(0, size), 0.0)
    source = tl.make_tensor_descriptor(x, [n // size, size], [size, 1], [1, size])
    target = tl.make_tensor_descriptor(y, [n // size, size], [size, 1], [1, size])
    target.store([p, 0], source.load([p, 0]) * 2)


@triton.jit
def race(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    tl.store(y + tl.arange(0, size), tl.load(x + p * size + tl.arange(0, size)))


@triton.jit
def outside(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    at = p * size + tl.arange(0, size)
    tl.store(y + at + (p == 63).to(tl.int32) * 3080, tl.load(x + at))


@triton.jit
def one_by_one(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    found = tl.histogram((tl.load(x + p * size + tl.arange(0, size)) * 0).to(tl.int32), 2)
    tl.store(y + p * size + tl.arange(0, size), tl.sum(found).to(tl.float32))


@triton.jit
def error(x, y, n, size: tl.constexpr):
    p = tl.program_id(0)
    tl.static_assert(p != 40, "gather")
    tl.store(y + p * size + tl.arange(0, size), 1.0)


GRIDS = {"product": (4, 4), "rows": (13,)}
KERNELS = {
    "loops": loops, "rows": rows, "product": product, "scans": scans, "shapes": shapes, "sums": sums,
    "described": described, "race": race, "outside": outside, "one by one": one_by_one, "error": error,
}  # fmt: skip


def run(name: str, launches: Launches) -> tuple[torch.Tensor, str]:
    """What a kernel leaves in memory, and what it raised."""
    torch.manual_seed(0)
    x, y = torch.randn(64 * 64), torch.zeros(64 * 64)
    launches.start()
    try:
        KERNELS[name][GRIDS.get(name, (64,))](x, y, x.numel(), size=16)
    except Exception as raised:
        return y, repr(raised)
    return y, ""


def main() -> None:
    launches = Launches()
    triton_kit.install(launches, contextlib.nullcontext)
    found = {}
    for name in KERNELS:
        launches.side_by_side = False
        one, said = run(name, launches)
        work = launches.work
        launches.side_by_side = True
        other, again = run(name, launches)
        same = name in ("race", "error") or torch.allclose(one, other, atol=1e-5)
        found[name] = {
            "same": same and said == again, "raised": again, "share": launches.work / max(work, 1),
            "faults": [item.kind for item in launches.faults],
        }  # fmt: skip
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
