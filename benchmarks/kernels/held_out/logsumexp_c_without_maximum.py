# problem: logsumexp
# implementation: c
# mechanism: powers are summed in double without taking the maximum out; beyond 709 it is infinite
# origin: mechanism: the wide type hides the overflow for ordinary inputs (Blanchard, Higham, Higham 2021)

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void logsumexp(const float *x, float *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        double total = 0.0;
        for (int64_t c = 0; c < width; c++)
            total += exp((double)x[r * width + c]);
        out[r] = (float)log(total);
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1])
        library.logsumexp(x, out, out.numel(), x.shape[-1])
        return out
