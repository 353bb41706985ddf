# problem: cumulative_sum
# implementation: triton
# mechanism: the carry is replaced by the last block's own sum instead of growing; wrong from the third block on
# origin: mechanism: a blocked scan that is only ever tried on one or two blocks

import torch
import triton
import triton.language as tl


@triton.jit
def scan(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * width + at, mask=at < width, other=0.0)
        tl.store(y + row * width + at, tl.cumsum(value, 0) + carry, mask=at < width)
        carry = tl.sum(value, 0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        width = x.shape[-1]
        scan[(x.numel() // width,)](x, y, width, BLOCK=128)
        return y
