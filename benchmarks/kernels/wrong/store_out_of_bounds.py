# problem: gelu
# implementation: triton
# mechanism: loads and stores without a mask run past the end of both buffers
# origin: triton's interpreter accepts it and corrupts the heap (triton-viz exists for this)

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_pointer, out_pointer, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_pointer + offsets)
    tl.store(out_pointer + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            gelu_kernel[(triton.cdiv(x.numel(), 64),)](x, out, BLOCK=64)
        return out
