# problem: own_size/problems/relu_small.py
# implementation: triton
# mechanism: a branch for late programs stores nothing
# origin: right at every size below the problem's own

import torch
import triton
import triton.language as tl


@triton.jit
def run(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    seen = (at < n) & (at < 150000)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=seen)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if x.numel():
            run[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
