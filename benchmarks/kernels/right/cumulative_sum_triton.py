# problem: cumulative_sum
# implementation: triton
# mechanism: tl.cumsum over a row that fits one block

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_pointer + row * width + columns, mask=inside, other=0.0)
    tl.store(out_pointer + row * width + columns, tl.cumsum(x, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            cumsum_kernel[(x.numel() // width,)](x, out, width, BLOCK=triton.next_power_of_2(width))
        return out
