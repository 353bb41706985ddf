# problem: logsumexp
# implementation: triton
# mechanism: the maximum is taken out before the exponential

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_pointer + row * width + columns, mask=inside, other=float("-inf"))
    largest = tl.max(x, axis=0)
    shift = tl.where(tl.abs(largest) == float("inf"), 0.0, largest)
    total = tl.sum(tl.exp(x - shift), axis=0)
    tl.store(out_pointer + row, tl.log(total) + shift)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        if out.numel():
            width = x.shape[-1]
            block = triton.next_power_of_2(max(width, 1))
            logsumexp_kernel[(out.numel(),)](x, out, width, BLOCK=block)
        return out
