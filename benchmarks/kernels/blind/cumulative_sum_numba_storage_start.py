# problem: cumulative_sum
# implementation: numba
# mechanism: reads from the start of the storage, so a contiguous slice of a larger tensor gives the sums of its neighbours
# origin: https://github.com/nntile/nntile/pull/464 (a contiguous view whose storage offset was dropped)

import numba
import torch


@numba.njit
def cumulate(x, out, rows, width):
    for row in range(rows):
        total = 0.0
        for column in range(width):
            total += x[row * width + column]
            out[row * width + column] = total


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            storage = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
            width = x.shape[-1]
            cumulate(storage.numpy(), out.view(-1).numpy(), x.numel() // width, width)
        return out
