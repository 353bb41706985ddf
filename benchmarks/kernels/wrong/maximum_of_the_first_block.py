# problem: softmax
# implementation: triton
# mechanism: rows longer than 2048 are summed in blocks whose maximum is that of the first block
# origin: mechanism: online softmax without the rescaling

import torch
import triton
import triton.language as tl


@triton.jit
def soft(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    m = tl.max(tl.load(x + row * n + at, mask=at < n, other=-float("inf")), 0)
    s = 0.0
    for start in range(0, n, BLOCK):
        v = tl.load(x + row * n + start + at, mask=start + at < n, other=-float("inf"))
        s += tl.sum(tl.exp(v - m), 0)
    for start in range(0, n, BLOCK):
        v = tl.load(x + row * n + start + at, mask=start + at < n, other=-float("inf"))
        tl.store(y + row * n + start + at, tl.exp(v - m) / s, mask=start + at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        n = x.shape[-1]
        y = torch.empty_like(x)
        soft[(x.numel() // n,)](x, y, n, BLOCK=2048)
        return y
