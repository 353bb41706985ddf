# problem: logsumexp
# implementation: triton
# mechanism: a row is read in blocks of 16 without a mask, into the next row and past the end
# origin: mechanism: out-of-bounds read

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.full((), 0.0, tl.float32)
    largest = tl.full((), float("-inf"), tl.float32)
    for start in range(0, width, BLOCK):
        x = tl.load(x_pointer + row * width + start + lanes)
        grown = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - grown) + tl.sum(tl.exp(x - grown), axis=0)
        largest = grown
    tl.store(out_pointer + row, tl.log(total) + largest)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
        if x.numel():
            logsumexp_kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=16)
        return out
