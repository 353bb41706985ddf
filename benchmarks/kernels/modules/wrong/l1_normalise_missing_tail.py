# problem: modules/problems/l1_normalise.py
# implementation: triton
# mechanism: the mean leaves out what does not fill a block
# origin: mechanism: the mean leaves out what does not fill a block

import torch
import triton
import triton.language as tl


@triton.jit
def normalise(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    count = n // BLOCK * BLOCK
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.abs(tl.load(x + row * n + at))
    mean = tl.sum(total, axis=0) / count
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * n + at, mask=at < n, other=0.0)
        tl.store(out + row * n + at, value / mean, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        normalise[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
        return out
