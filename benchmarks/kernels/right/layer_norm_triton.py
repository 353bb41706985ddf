# problem: layer_norm
# implementation: triton
# mechanism: mean first, then the mean of squared distances; the masked part counts as zero

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_pointer, w_pointer, b_pointer, out_pointer, width, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    x = tl.load(x_pointer + row * width + columns, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / width
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / width
    weight = tl.load(w_pointer + columns, mask=inside, other=0.0)
    bias = tl.load(b_pointer + columns, mask=inside, other=0.0)
    y = centred / tl.sqrt(variance + epsilon) * weight + bias
    tl.store(out_pointer + row * width + columns, y, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            layer_norm_kernel[(x.numel() // width,)](
                x, weight, bias, out, width, self.epsilon, BLOCK=triton.next_power_of_2(width)
            )
        return out
