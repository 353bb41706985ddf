# problem: relu
# implementation: triton
# mechanism: above 4096 elements only the even ones are written
# origin: mechanism: persistent kernels without the loop

import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(v < 0, 0.0, v), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.zeros_like(x)
        relu[(min(triton.cdiv(x.numel(), 1024), 65),)](x, y, x.numel(), BLOCK=1024)
        return y
