# problem: linear_recurrence
# implementation: triton
# mechanism: one program per batch and block of channels walks through time

import torch
import triton
import triton.language as tl


@triton.jit
def recur(a_pointer, x_pointer, out_pointer, time, width, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < width
    state = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in range(time):
        place = (batch * time + step) * width + channel
        a = tl.load(a_pointer + place, mask=inside, other=0.0)
        x = tl.load(x_pointer + place, mask=inside, other=0.0)
        state = a * state + x
        tl.store(out_pointer + place, state, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, a, x):
        a, x = a.contiguous(), x.contiguous()
        out = torch.empty_like(x)
        batch, time, width = x.shape
        if out.numel():
            recur[(batch, triton.cdiv(width, 16))](a, x, out, time, width, BLOCK=16)
        return out
