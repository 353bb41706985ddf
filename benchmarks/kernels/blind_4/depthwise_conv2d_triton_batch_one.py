# problem: depthwise_conv2d
# implementation: triton
# mechanism: the channel of a plane is plane // batch instead of plane % channels, which is the same for a batch of one only
# origin: solutions that hold for one input shape (robust-kbench, arXiv 2509.14279; AgentKernelArena, arXiv 2605.16819)

import torch
import triton
import triton.language as tl


@triton.jit
def depthwise(x_pointer, w_pointer, out_pointer, batch, rows, columns, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane // batch
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < rows * columns
    row, column = place // columns, place % columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for down in range(3):
        for across in range(3):
            r, c = row + down - 1, column + across - 1
            seen = inside & (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
            x = tl.load(x_pointer + plane * rows * columns + r * columns + c, mask=seen, other=0.0)
            w = tl.load(w_pointer + channel * 9 + down * 3 + across)
            total += tl.where(seen, x * w, 0.0)
    tl.store(out_pointer + plane * rows * columns + place, total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        x, weight = x.contiguous(), weight.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            batch, channels, rows, columns = x.shape
            grid = (batch * channels, triton.cdiv(rows * columns, 64))
            depthwise[grid](x, weight, out, batch, rows, columns, BLOCK=64)
        return out
