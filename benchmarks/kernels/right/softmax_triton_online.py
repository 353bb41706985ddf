# problem: softmax
# implementation: triton
# mechanism: two passes over the row in blocks of 32 with a running maximum

import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    largest = tl.full((), float("-inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, width, BLOCK):
        inside = start + lanes < width
        x = tl.load(x_pointer + row * width + start + lanes, mask=inside, other=float("-inf"))
        grown = tl.maximum(largest, tl.max(x, axis=0))
        shift = tl.where(grown == float("-inf"), 0.0, grown)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
        largest = grown
    for start in range(0, width, BLOCK):
        inside = start + lanes < width
        x = tl.load(x_pointer + row * width + start + lanes, mask=inside, other=float("-inf"))
        tl.store(out_pointer + row * width + start + lanes, tl.exp(x - largest) / total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            online_softmax[(x.numel() // width,)](x, out, width, BLOCK=32)
        return out
