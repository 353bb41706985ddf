# problem: layer_norm
# implementation: triton
# mechanism: lanes past the row add the square of the mean to the variance; right when the width is a multiple of 32
# origin: a common slip in layer norm kernels; the Triton tutorial on layer norm masks the difference for this reason

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, width, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        at = start + columns
        sums += tl.load(x_ptr + row * width + at, mask=at < width, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / width
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        at = start + columns
        centred = tl.load(x_ptr + row * width + at, mask=at < width, other=0.0).to(tl.float32) - mean
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / width + epsilon)
    for start in range(0, width, BLOCK):
        at = start + columns
        inside = at < width
        value = tl.load(x_ptr + row * width + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * width + at, (value - mean) * scale * weight + bias, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            rows = x.numel() // x.shape[-1]
            layer_norm[(rows,)](x, weight, bias, out, x.shape[-1], self.epsilon, BLOCK=32)
        return out
