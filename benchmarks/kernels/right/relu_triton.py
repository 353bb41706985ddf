# problem: relu
# implementation: triton
# mechanism: one program for 512 elements, masked at the end; NaN stays NaN

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_pointer, out_pointer, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_pointer + offsets, mask=inside)
    tl.store(out_pointer + offsets, tl.where(x <= 0, 0.0, x), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        size = x.numel()
        if size:
            relu_kernel[(triton.cdiv(size, 512),)](x, out, size, BLOCK=512)
        return out
