# problem: logsumexp
# implementation: triton
# mechanism: the running maximum is not guarded, so a row of minus infinities, or one with plus infinity, is not a number
# origin: https://github.com/microsoft/onnxruntime/issues/28461 (the same in many libraries)

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    largest = tl.load(x_ptr + row * width).to(tl.float32)
    total = 0.0
    for start in range(0, width, BLOCK):
        inside = start + columns < width
        values = tl.load(x_ptr + row * width + start + columns, mask=inside, other=float("-inf"))
        values = values.to(tl.float32)
        new = tl.maximum(largest, tl.max(values, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(values - new), axis=0)
        largest = new
    tl.store(out_ptr + row, largest + tl.log(total))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        if out.numel():
            logsumexp[(out.numel(),)](x, out, x.shape[-1], BLOCK=64)
        return out
