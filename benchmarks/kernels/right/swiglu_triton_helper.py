# problem: swiglu
# implementation: triton
# mechanism: a helper function of its own, and launch options for a GPU

import torch
import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def gated(x_pointer, out_pointer, size, half, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    row, column = offsets // half, offsets % half
    place = x_pointer + row * 2 * half + column
    gate = tl.load(place, mask=inside, other=0.0)
    up = tl.load(place + half, mask=inside, other=0.0)
    tl.store(out_pointer + offsets, silu(gate) * up, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        half = x.shape[-1] // 2
        out = torch.empty((*x.shape[:-1], half), dtype=x.dtype, device=x.device)
        size = out.numel()
        if size:
            gated[(triton.cdiv(size, 256),)](x, out, size, half, BLOCK=256, num_warps=4, num_stages=2)
        return out
