# problem: batched_matmul
# implementation: triton
# mechanism: two programs add halves of the inner axis to the same tile with a plain load and store
# origin: triton-lang/triton#2183 and #558: split-K needs atomic_add; programs of one launch have no order

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, rows, inner, columns, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    which = tl.program_id(0)
    half = tl.program_id(1)
    tiles = tl.cdiv(columns, SIDE)
    i = tl.program_id(2) // tiles * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(2) % tiles * SIDE + tl.arange(0, SIDE)
    a += which * rows * inner
    b += which * inner * columns
    c += which * rows * columns
    share = tl.cdiv(inner, 2)
    last = tl.minimum(inner, (half + 1) * share)
    total = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for start in range(half * share, last, DEPTH):
        k = start + tl.arange(0, DEPTH)
        left = tl.load(
            a + i[:, None] * inner + k[None, :],
            mask=(i[:, None] < rows) & (k[None, :] < last), other=0.0,
        )
        right = tl.load(
            b + k[:, None] * columns + j[None, :],
            mask=(k[:, None] < last) & (j[None, :] < columns), other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    place = c + i[:, None] * columns + j[None, :]
    tl.store(place, tl.load(place, mask=inside, other=0.0) + total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        count, rows, inner = a.shape
        columns = b.shape[-1]
        c = torch.zeros((count, rows, columns), dtype=a.dtype)
        tiles = triton.cdiv(rows, 16) * triton.cdiv(columns, 16)
        product[(count, 2, tiles)](a, b, c, rows, inner, columns, SIDE=16, DEPTH=16)
        return c
