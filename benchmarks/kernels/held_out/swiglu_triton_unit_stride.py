# problem: swiglu
# implementation: triton
# mechanism: the row stride is passed on but the last axis is taken to be dense; a strided view is misread
# origin: pytorch/executorch#22193 and NVIDIA/TransformerEngine#2746: only one of the strides is looked at

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu(x, y, half, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x + row * stride + at, mask=at < half, other=0.0)
    up = tl.load(x + row * stride + half + at, mask=at < half, other=0.0)
    tl.store(y + row * half + at, gate / (1.0 + tl.exp(-gate)) * up, mask=at < half)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, width = x.shape
        y = torch.empty((rows, width // 2), dtype=x.dtype)
        grid = (rows, triton.cdiv(width // 2, 64))
        swiglu[grid](x, y, width // 2, x.stride(0), BLOCK=64)
        return y
