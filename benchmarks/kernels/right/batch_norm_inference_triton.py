# problem: batch_norm_inference
# implementation: triton
# mechanism: one program per batch and channel

import torch
import triton
import triton.language as tl


@triton.jit
def normalise(x_pointer, mean_pointer, spread_pointer, w_pointer, b_pointer, out_pointer, channels, length, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane % channels
    offsets = tl.arange(0, BLOCK)
    inside = offsets < length
    x = tl.load(x_pointer + plane * length + offsets, mask=inside, other=0.0)
    mean = tl.load(mean_pointer + channel)
    spread = tl.load(spread_pointer + channel)
    weight = tl.load(w_pointer + channel)
    bias = tl.load(b_pointer + channel)
    y = (x - mean) / tl.sqrt(spread * spread + 1e-5) * weight + bias
    tl.store(out_pointer + plane * length + offsets, y, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x, mean, spread, weight, bias):
        x, mean, spread = x.contiguous(), mean.contiguous(), spread.contiguous()
        weight, bias = weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            batch, channels, length = x.shape
            normalise[(batch * channels,)](
                x, mean, spread, weight, bias, out, channels, length,
                BLOCK=triton.next_power_of_2(length),
            )
        return out
