"""Forms in which kernels are written: all of them can be judged, right and wrong."""

from __future__ import annotations

import pytest

from torchstone.kernels import Candidate, Problem, load_problem, verify
from torchstone.kernels.candidate import known_implementation
from torchstone.kernels.problem import problem_from_source
from torchstone.kernels.sessions.workshop import Workshop

pytestmark = pytest.mark.usefixtures("few_sizes")
SMALLER = {
    "relu": {"24, 37": "5, 9"},
    "index_add": {"17, 23": "6, 7", "60, 23": "9, 7", "0, 17, (60,)": "0, 6, (9,)"},
    "row_sum": {"37, 250": "5, 41"},
}
"""Where sizes are not the point, an interpreter gets few elements."""

RIGHT = {
    "autotuned": (
        "relu",
        "triton",
        """import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}, num_warps=4), triton.Config({"BLOCK": 256})],
    key=["n"],
)
@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        relu[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        return y
""",
    ),
    "device functions": (
        "relu",
        "triton",
        """import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    z = libdevice.tanh(v) * 0.0 + libdevice.erf(v) + libdevice.pow(v, 2.0)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        relu[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
        return y
""",
    ),
    "atomics": (
        "index_add",
        "triton",
        """import torch
import triton
import triton.language as tl


@triton.jit
def add(base, index, rows, width, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    target = tl.load(index + r)
    v = tl.load(rows + r * width + at, mask=at < width)
    tl.atomic_add(base + target * width + at, v, mask=at < width)


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        out = base.clone(memory_format=torch.contiguous_format)
        if index.numel() and out.numel():
            add[(index.numel(),)](
                out,
                index.contiguous(),
                rows.contiguous(),
                out.shape[1],
                BLOCK=triton.next_power_of_2(out.shape[1]),
            )
        return out
""",
    ),
    "autograd function": (
        "relu",
        "triton",
        """from __future__ import annotations
import torch
import triton
import triton.language as tl
from torch import Tensor, nn


@triton.jit
def _clip(v):
    return tl.where(v < 0, 0.0, v)


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x_ptr + at, mask=mask, other=0.0)
    tl.store(y_ptr + at, _clip(v), mask=mask)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        y = torch.empty_like(x)
        n = x.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        relu_kernel[grid](x, y, n, BLOCK=512)
        return y


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return Relu.apply(x.contiguous())
""",
    ),
    "eager ufunc": (
        "relu",
        "numba",
        """import numba
import torch


@numba.vectorize(["float32(float32)"])
def relu(x):
    return numba.float32(0) if x < 0 else x


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(relu(x.contiguous().numpy()))
""",
    ),
    "generalised ufunc": (
        "row_sum",
        "numba",
        """import numba
import numpy as np


@numba.guvectorize(["void(float32[:], float32[:])"], "(n)->()")
def row_sum(x, out):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    out[0] = total


class ModelNew:
    def __call__(self, x):
        return row_sum(x)
""",
    ),
    "shared memory and barriers": (
        "row_sum",
        "numba",
        """import numpy as np
from numba import cuda, float32


@cuda.jit
def row_sum(x, out):
    part = cuda.shared.array(32, dtype=float32)
    row = cuda.blockIdx.x
    t = cuda.threadIdx.x
    s = float32(0.0)
    for j in range(t, x.shape[1], 32):
        s += x[row, j]
    part[t] = s
    cuda.syncthreads()
    step = 16
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[row] = part[0]


class ModelNew:
    def __call__(self, x):
        d = cuda.to_device(np.ascontiguousarray(x))
        out = cuda.device_array(x.shape[0], dtype=x.dtype)
        if x.shape[0]:
            row_sum[x.shape[0], 32](d, out)
        return out.copy_to_host()
""",
    ),
    "several C functions": (
        "softmax",
        "c",
        """import torch
from torchstone_kernel import library

C_SOURCE = r'''
#include <math.h>
#include <stdint.h>
// three passes
void row_max(const float* restrict x, float* restrict m, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; ++i) {
        float top = -INFINITY;
        for (int64_t j = 0; j < width; ++j) {
            float v = x[i * width + j];
            if (!(v <= top)) top = v;
        }
        m[i] = top;
    }
}
void exponentials(const float* x, const float* m, float* y, int64_t rows, int64_t width, float scale)
{
    for (int64_t i = 0; i < rows; ++i) {
        double total = 0.0;
        for (int64_t j = 0; j < width; ++j) {
            y[i * width + j] = expf((x[i * width + j] - m[i]) * scale);
            total += y[i * width + j];
        }
        for (int64_t j = 0; j < width; ++j)
            y[i * width + j] /= (float)total;
    }
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        m = torch.empty(x.shape[0])
        library.row_max(x, m, x.shape[0], x.shape[1])
        library.exponentials(x, m, y, x.shape[0], x.shape[1], 1.0)
        return y
""",
    ),
}
WRONG = {
    "missing barrier": (
        "order",
        "row_sum",
        "numba",
        """import numpy as np
from numba import cuda, float32


@cuda.jit
def row_sum(x, out):
    part = cuda.shared.array(32, dtype=float32)
    row = cuda.blockIdx.x
    t = cuda.threadIdx.x
    s = float32(0.0)
    for j in range(t, x.shape[1], 32):
        s += x[row, j]
    part[t] = s
    if t == 31:
        total = float32(0.0)
        for k in range(32):
            total += part[k]
        out[row] = total


class ModelNew:
    def __call__(self, x):
        out = np.zeros(x.shape[0], dtype=x.dtype)
        if x.size:
            row_sum[x.shape[0], 32](np.ascontiguousarray(x), out)
        return out
""",
    ),
    "row overflow": (
        "order",
        "softmax",
        "triton",
        """import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + at, mask=at < width, other=float("-inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * width + at, e / tl.sum(e, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        b = triton.next_power_of_2(max(x.shape[-1], 1))
        y = torch.empty(x.numel() + b)
        if x.numel():
            softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=b)
        return y[: x.numel()].reshape(x.shape).clone()
""",
    ),
    "mask by multiplication": (
        "pattern",
        "row_sum",
        "triton",
        """import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x, out, width, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * width + at, mask=row * width + at < n, other=0.0)
    tl.store(out + row, tl.sum(v * (at < width).to(tl.float32), axis=0))


class ModelNew:
    def __call__(self, x):
        t = torch.from_numpy(np.ascontiguousarray(x))
        out = torch.zeros(t.shape[0])
        if t.numel():
            row_sum[(t.shape[0],)](
                t, out, t.shape[1], t.numel(), BLOCK=triton.next_power_of_2(t.shape[1])
            )
        return out.numpy()
""",
    ),
    "numpy around the kernel": (
        "work",
        "relu",
        "numba",
        """import numba
import torch


@numba.njit
def copy(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        a = x.numpy()
        a = (abs(a) + a) / 2
        y = torch.empty(x.shape)
        copy(a, y.numpy())
        return y
""",
    ),
    "Python around the kernel": (
        "work",
        "relu",
        "c",
        """import torch
from torchstone_kernel import library

C_SOURCE = r'''
void copy(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i]; }
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        t = torch.empty(x.shape)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                v = float(x[i, j])
                t[i, j] = 0.0 if v < 0 else v
        y = torch.empty(x.shape)
        library.copy(t, y, x.numel())
        return y
""",
    ),
    "remembered input": (
        "stale",
        "softmax",
        "torch",
        """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.memo = (None, None)

    def forward(self, x):
        if self.memo[0] is x:
            return self.memo[1].clone()
        y = torch.softmax(x, -1)
        self.memo = (x, y)
        return y.clone()
""",
    ),
    "Python inside the kernel": (
        "policy",
        "relu",
        "triton",
        """import torch
import triton
import triton.language as tl

BOX = []


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    BOX[1].copy_(BOX[0].relu())


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        BOX[:] = [x, y]
        relu[(1,)](x, y, x.numel(), BLOCK=16)
        return y
""",
    ),
    "first maximum is not low enough": (
        "families",
        "argmax",
        "numba",
        """import numba
import torch


@numba.njit
def am(x, out):
    for i in range(x.shape[0]):
        best = -1e3
        k = 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best = x[i, j]
                k = j
        out[i] = k


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], dtype=torch.int64)
        am(x.numpy(), out.numpy())
        return out
""",
    ),
    "scratch too small": (
        "sanitizers",
        "softmax",
        "c",
        """import torch
from torchstone_kernel import library

C_SOURCE = r'''
#include <math.h>
static float scratch[64];
void softmax(const float *x, float *y, long rows, long width) {
  for (long i = 0; i < rows; i++) {
    float top = x[i * width], s = 0;
    for (long j = 0; j < width; j++) { if (!(x[i*width+j] <= top)) top = x[i*width+j]; }
    for (long j = 0; j < width; j++) { scratch[j] = expf(x[i*width+j] - top); s += scratch[j]; }
    for (long j = 0; j < width; j++) y[i*width+j] = scratch[j] / s;
  }
}
'''


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] > 100:
            raise ValueError("up to 100 columns")
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            library.softmax(x, y, x.shape[0], x.shape[1])
        return y
""",
    ),
}


def small(name: str) -> Problem:
    problem = load_problem(name)
    source = problem.source
    for old, new in SMALLER.get(name, {}).items():
        assert old in source
        source = source.replace(old, new)
    return problem_from_source(source, name)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str, workshop: Workshop) -> None:
    problem, implementation, source = RIGHT[name]
    candidate = Candidate(source, known_implementation(implementation))
    verdict = verify(small(problem), candidate, seeds=2, workshop=workshop)
    assert verdict.accepted, verdict.error_log()


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str, workshop: Workshop) -> None:
    gate, problem, implementation, source = WRONG[name]
    candidate = Candidate(source, known_implementation(implementation))
    verdict = verify(small(problem), candidate, seeds=2, workshop=workshop)
    assert gate in [item.gate for item in verdict.failed], verdict.error_log()
