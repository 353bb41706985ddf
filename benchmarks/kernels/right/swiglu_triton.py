# problem: swiglu
# implementation: triton
# mechanism: one program per row reads both halves

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_pointer, out_pointer, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < half
    gate = tl.load(x_pointer + row * 2 * half + columns, mask=inside, other=0.0)
    up = tl.load(x_pointer + row * 2 * half + half + columns, mask=inside, other=0.0)
    tl.store(out_pointer + row * half + columns, gate / (1.0 + tl.exp(-gate)) * up, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        half = x.shape[-1] // 2
        out = torch.empty((*x.shape[:-1], half), dtype=x.dtype, device=x.device)
        if out.numel():
            rows = out.numel() // half
            swiglu_kernel[(rows,)](x, out, half, BLOCK=triton.next_power_of_2(half))
        return out
