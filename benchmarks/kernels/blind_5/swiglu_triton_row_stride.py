# problem: swiglu
# implementation: triton
# mechanism: only the last stride is checked; rows are taken to follow one another, so a view of
#   some columns or of every other row is read from wrong places
# origin: NVIDIA/TransformerEngine pull 2746 / issue 2734 (guard checks stride(-1) only)

import torch
import triton
import triton.language as tl


@triton.jit
def gate(x_ptr, out_ptr, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < half
    start = x_ptr + row * (2 * half)
    g = tl.load(start + columns, mask=inside, other=0.0)
    u = tl.load(start + half + columns, mask=inside, other=0.0)
    tl.store(out_ptr + row * half + columns, g / (1.0 + tl.exp(-g)) * u, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.stride(-1) != 1:
            x = x.contiguous()
        half = x.shape[-1] // 2
        out = torch.empty(*x.shape[:-1], half, dtype=x.dtype)
        if out.numel():
            rows = x.numel() // x.shape[-1]
            gate[(rows, triton.cdiv(half, 128))](x, out, half, BLOCK=128)
        return out
