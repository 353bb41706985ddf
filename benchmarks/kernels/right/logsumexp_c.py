# problem: logsumexp
# implementation: c
# mechanism: the largest first, then the sum of what is left

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void logsumexp(const float *x, float *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        double largest = -INFINITY, total = 0.0;
        for (int64_t c = 0; c < width; c++) {
            double value = x[r * width + c];
            if (value > largest || value != value)
                largest = value;
        }
        double shift = isinf(largest) ? 0.0 : largest;
        for (int64_t c = 0; c < width; c++)
            total += exp(x[r * width + c] - shift);
        out[r] = (float)(log(total) + shift);
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        library.logsumexp(x, out, out.numel(), x.shape[-1])
        return out
