# problem: cumulative_sum
# implementation: c
# mechanism: the loop runs one element too far, past the end of both buffers
# origin: mechanism: off by one in C

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void scan(const float *x, float *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        double total = 0.0;
        for (int64_t c = 0; c < width; c++) {
            total += x[r * width + c];
            out[r * width + c] = (float)total;
        }
    }
    out[rows * width] = 0.0f;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            library.scan(x, out, x.numel() // x.shape[-1], x.shape[-1])
        return out
