# problem: softmax
# implementation: triton
# mechanism: the running sum is not rescaled when a later block raises the maximum; rows of one block are right
# origin: Milakov and Gimelshein 2018 (arXiv 1805.02867): the rescaling is the point of the online softmax

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    largest = float("-inf")
    total = 0.0
    for start in range(0, width, BLOCK):
        at = start + lane
        value = tl.load(x + row * width + at, mask=at < width, other=float("-inf"))
        largest = tl.maximum(largest, tl.max(value, 0))
        total += tl.sum(tl.exp(value - largest), 0)
    for start in range(0, width, BLOCK):
        at = start + lane
        value = tl.load(x + row * width + at, mask=at < width, other=float("-inf"))
        tl.store(y + row * width + at, tl.exp(value - largest) / total, mask=at < width)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        width = x.shape[-1]
        softmax[(x.numel() // width,)](x, y, width, BLOCK=128)
        return y
