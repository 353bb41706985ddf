# problem: modules/problems/difference_of_squares.py
# implementation: triton
# mechanism: the product of sum and difference

import torch
import triton
import triton.language as tl


@triton.jit
def squares(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(a + at, mask=at < n, other=0.0)
    q = tl.load(b + at, mask=at < n, other=0.0)
    tl.store(out + at, (p - q) * (p + q), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        n = a.numel()
        squares[(triton.cdiv(n, 128),)](a, b, out, n, BLOCK=128)
        return out
