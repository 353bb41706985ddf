# problem: matmul
# implementation: triton
# mechanism: tiles of 16 by 16, the sum in single precision, every edge masked

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_pointer, b_pointer, c_pointer, M, N, K, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        inner = start + tl.arange(0, TILE)
        a = tl.load(
            a_pointer + rows[:, None] * K + inner[None, :],
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_pointer + inner[:, None] * N + columns[None, :],
            mask=(inner[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total += tl.dot(a, b, input_precision="ieee")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_pointer + rows[:, None] * N + columns[None, :], total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty((m, n), dtype=a.dtype, device=a.device)
        if out.numel():
            grid = (triton.cdiv(m, 16), triton.cdiv(n, 16))
            matmul_kernel[grid](a, b, out, m, n, k, TILE=16)
        return out
