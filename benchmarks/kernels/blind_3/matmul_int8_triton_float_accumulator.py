# problem: matmul_int8
# implementation: triton
# mechanism: the sum is kept in float32, exact only below 2**24: long inner sides lose units
# origin: written for this set; no public source looked up

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, k, n, ROWS: tl.constexpr, COLS: tl.constexpr, INNER: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, k, INNER):
        inner = start + tl.arange(0, INNER)
        left = tl.load(a + rows[:, None] * k + inner[None, :],
                       mask=(rows[:, None] < m) & (inner[None, :] < k), other=0)
        right = tl.load(b + inner[:, None] * n + cols[None, :],
                        mask=(inner[:, None] < k) & (cols[None, :] < n), other=0)
        total += tl.dot(left.to(tl.float32), right.to(tl.float32), input_precision="ieee")
    tl.store(c + rows[:, None] * n + cols[None, :], total.to(tl.int32),
             mask=(rows[:, None] < m) & (cols[None, :] < n))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        out = torch.empty(m, n, dtype=torch.int32)
        if out.numel():
            matmul[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
                a, b, out, m, k, n, ROWS=32, COLS=32, INNER=32,
            )
        return out
