# problem: batch_norm_inference
# implementation: triton
# mechanism: divides by spread + epsilon instead of the root of its square + epsilon; small or negative spreads differ
# origin: mechanism: epsilon inside or outside the root, the difference that breaks ports between frameworks

import torch
import triton
import triton.language as tl


@triton.jit
def normalise(x, mean, spread, weight, bias, y, channels, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    channel = row % channels
    scale = tl.load(weight + channel) / (tl.load(spread + channel) + 1e-5)
    shift = tl.load(bias + channel) - tl.load(mean + channel) * scale
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * length + at, mask=at < length, other=0.0)
        tl.store(y + row * length + at, value * scale + shift, mask=at < length)


class ModelNew(torch.nn.Module):
    def forward(self, x, mean, spread, weight, bias):
        x = x.contiguous()
        y = torch.empty_like(x)
        batch, channels, length = x.shape
        normalise[(batch * channels,)](
            x, mean.contiguous(), spread.contiguous(), weight.contiguous(), bias.contiguous(), y,
            channels, length, BLOCK=64,
        )
        return y
