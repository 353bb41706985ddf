# problem: gelu
# implementation: triton
# mechanism: erf from the language's own library

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_pointer, out_pointer, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_pointer + offsets, mask=inside, other=0.0)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_pointer + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        size = x.numel()
        if size:
            gelu_kernel[(triton.cdiv(size, 512),)](x, out, size, BLOCK=512)
        return out
