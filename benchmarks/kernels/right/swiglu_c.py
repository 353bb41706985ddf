# problem: swiglu
# implementation: c
# mechanism: both halves of a row in one loop, the exponential in double precision

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void swiglu(const float *x, float *out, int64_t rows, int64_t half) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < half; c++) {
            double gate = x[r * 2 * half + c], up = x[r * 2 * half + half + c];
            out[r * half + c] = (float)(gate / (1.0 + exp(-gate)) * up);
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        half = x.shape[-1] // 2
        out = torch.empty((*x.shape[:-1], half), dtype=x.dtype)
        if out.numel():
            library.swiglu(x, out, out.numel() // half, half)
        return out
