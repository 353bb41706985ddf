# problem: relu
# implementation: triton
# mechanism: the grid is rounded down, so the last part is never written
# origin: the classic mask bug; mindspore-ai/akg's comparison accepted 300 unwritten elements of 262144

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
        out = torch.zeros_like(x)
        size = x.numel()
        if size >= 128:
            relu_kernel[(size // 128,)](x, out, size, BLOCK=128)
        return out
