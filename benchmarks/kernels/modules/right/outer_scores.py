# problem: modules/problems/outer_scores.py
# implementation: triton
# mechanism: a tile of pairs for each program

import torch
import triton
import triton.language as tl


@triton.jit
def pairs(a, b, out, n, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(a + i, mask=i < n, other=0.0)
    q = tl.load(b + j, mask=j < m, other=0.0)
    value = tl.exp(-tl.abs(p[:, None] - q[None, :]))
    inside = (i < n)[:, None] & (j < m)[None, :]
    tl.store(out + i[:, None] * m + j[None, :], value, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        n, m = a.shape[0], b.shape[0]
        out = torch.empty((n, m), dtype=a.dtype)
        pairs[(triton.cdiv(n, 16), triton.cdiv(m, 16))](a, b, out, n, m, BLOCK=16)
        return out
