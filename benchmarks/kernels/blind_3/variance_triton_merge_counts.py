# problem: variance
# implementation: triton
# mechanism: the last block counts as full in the merge: wrong for ragged rows longer than 256
# origin: written for this set; no public source looked up

import torch
import triton
import triton.language as tl


@triton.jit
def variance(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    held = lanes < width
    first = tl.load(x + row * width + lanes, mask=held, other=0.0)
    count = tl.minimum(width, BLOCK).to(tl.float32)
    mean = tl.sum(first, 0) / count
    away = tl.where(held, first - mean, 0.0)
    spread = tl.sum(away * away, 0)
    for start in range(BLOCK, width, BLOCK):
        held = start + lanes < width
        part = tl.load(x + row * width + start + lanes, mask=held, other=0.0)
        size = tl.minimum(width - start, BLOCK).to(tl.float32)
        middle = tl.sum(part, 0) / size
        away = tl.where(held, part - middle, 0.0)
        gap = middle - mean
        joined = count + BLOCK
        spread += tl.sum(away * away, 0) + gap * gap * count * BLOCK / joined
        mean += gap * BLOCK / joined
        count = joined
    tl.store(out + row, spread / (width - 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        if out.numel():
            variance[(out.numel(),)](x, out, x.shape[-1], BLOCK=256)
        return out
