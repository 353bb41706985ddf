# problem: matmul
# implementation: triton
# mechanism: tiles are visited in groups of three rows, and the last group is taken as full; tiles are left out when it is not
# origin: https://github.com/triton-lang/triton/issues/1896 (the order of tiles in the matmul tutorial)

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn,
           SIDE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    program = tl.program_id(0)
    across = tl.cdiv(n, SIDE)
    in_group = GROUP * across
    first = program // in_group * GROUP
    tile_row = first + program % in_group % GROUP
    tile_column = program % in_group // GROUP
    rows = tile_row * SIDE + tl.arange(0, SIDE)
    columns = tile_column * SIDE + tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for start in range(0, k, DEPTH):
        deep = start + tl.arange(0, DEPTH)
        a = tl.load(a_ptr + rows[:, None] * am + deep[None, :] * ak,
                    mask=(rows[:, None] < m) & (deep[None, :] < k), other=0.0)
        b = tl.load(b_ptr + deep[:, None] * bk + columns[None, :] * bn,
                    mask=(deep[:, None] < k) & (columns[None, :] < n), other=0.0)
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total,
             mask=(rows[:, None] < m) & (columns[None, :] < n))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        m, k = a.shape
        n = b.shape[1]
        c = torch.zeros((m, n), dtype=a.dtype)
        tiles = triton.cdiv(m, 16) * triton.cdiv(n, 16)
        if tiles:
            matmul[(tiles,)](a, b, c, m, n, k, *a.stride(), *b.stride(), SIDE=16, DEPTH=16, GROUP=3)
        return c
