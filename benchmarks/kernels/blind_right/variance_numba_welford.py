# problem: variance
# implementation: numba
# mechanism: Welford's update over chunks of a row, which are then merged; rows in parallel

import math

import numba
import torch

CHUNK = 64


@numba.njit(parallel=True, error_model="numpy")
def variance(x, out):
    rows, width = x.shape
    for row in numba.prange(rows):
        seen, mean, squares = 0.0, 0.0, 0.0
        for start in range(0, width, CHUNK):
            count, part, spread = 0.0, 0.0, 0.0
            for column in range(start, min(start + CHUNK, width)):
                value = float(x[row, column])
                count += 1.0
                ahead = value - part
                part += ahead / count
                spread += ahead * (value - part)
            both = seen + count
            apart = part - mean
            squares += spread + apart * apart * (seen * count / both)
            mean += apart * (count / both)
            seen = both
        out[row] = squares / max(seen - 1.0, 0.0) if seen > 0.0 else math.nan


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        if out.numel():
            flat = x.contiguous().view(out.numel(), x.shape[-1])
            variance(flat.numpy(), out.view(-1).numpy())
        return out
