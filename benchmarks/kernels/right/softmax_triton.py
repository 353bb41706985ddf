# problem: softmax
# implementation: triton
# mechanism: one program per row, the row in one block

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_pointer + row * width + columns, mask=inside, other=float("-inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_pointer + row * width + columns, weights / tl.sum(weights, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            softmax_kernel[(x.numel() // width,)](x, out, width, BLOCK=triton.next_power_of_2(width))
        return out
