# problem: matmul
# implementation: triton
# mechanism: four programs share all tiles, which they visit in groups of rows with a shorter last group, for any strides

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn,
           TALL: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr, GROUP: tl.constexpr):
    down, across = tl.cdiv(m, TALL), tl.cdiv(n, WIDE)
    for tile in range(tl.program_id(0), down * across, tl.num_programs(0)):
        in_group = GROUP * across
        first = tile // in_group * GROUP
        tall = tl.minimum(down - first, GROUP)
        row = (first + tile % in_group % tall) * TALL + tl.arange(0, TALL)
        column = tile % in_group // tall * WIDE + tl.arange(0, WIDE)
        total = tl.zeros((TALL, WIDE), tl.float32)
        for start in range(0, k, DEEP):
            deep = start + tl.arange(0, DEEP)
            a = tl.load(a_ptr + row[:, None] * am + deep[None, :] * ak,
                        mask=(row < m)[:, None] & (deep < k)[None, :], other=0.0)
            b = tl.load(b_ptr + deep[:, None] * bk + column[None, :] * bn,
                        mask=(deep < k)[:, None] & (column < n)[None, :], other=0.0)
            total = tl.dot(a, b, total, input_precision="ieee")
        tl.store(c_ptr + row[:, None] * n + column[None, :], total,
                 mask=(row < m)[:, None] & (column < n)[None, :])


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype)
        if c.numel():
            matmul[(4,)](
                a, b, c, m, n, k, *a.stride(), *b.stride(), TALL=16, WIDE=32, DEEP=16, GROUP=2
            )
        return c
