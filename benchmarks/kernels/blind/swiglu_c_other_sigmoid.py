# problem: swiglu
# implementation: c
# mechanism: the sigmoid is exp(x) / (1 + exp(x)), which is infinity over infinity for a gate above 88
# origin: a textbook form of the sigmoid; numerically stable sigmoids choose the form by the sign for this reason

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void swiglu(const float *x, float *out, int64_t rows, int64_t half) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < half; c++) {
            float gate = x[r * 2 * half + c], up = x[r * 2 * half + half + c];
            float grown = expf(gate);
            out[r * half + c] = gate * (grown / (1.0f + grown)) * up;
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
