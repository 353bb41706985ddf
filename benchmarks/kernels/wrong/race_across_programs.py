# problem: cumulative_sum
# implementation: triton
# mechanism: a program takes its carry from what the program before it stored, which may not have run yet
# origin: mechanism: programs of a grid have no order

import torch
import triton
import triton.language as tl


@triton.jit
def scan(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    columns = part * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_pointer + row * width + columns, mask=inside, other=0.0)
    total = tl.cumsum(x, axis=0)
    carry = tl.load(out_pointer + row * width + part * BLOCK - 1, mask=part > 0, other=0.0)
    tl.store(out_pointer + row * width + columns, total + carry, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.zeros_like(x)
        if x.numel():
            width = x.shape[-1]
            scan[(x.numel() // width, triton.cdiv(width, 32))](x, out, width, BLOCK=32)
        return out
