# problem: argmax
# implementation: c
# mechanism: floats are compared as integers, so minus zero is below zero and the first of equal maxima is not found
# origin: the total order of IEEE 754 used for comparison, as in radix sorts; it tells zeros apart

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>
#include <string.h>

static int32_t ordered(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ 0x7fffffff : bits;
}

void argmax(const float *x, int64_t *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = 0;
        int32_t best = ordered(x[r * width]);
        for (int64_t c = 1; c < width; c++) {
            int32_t key = ordered(x[r * width + c]);
            if (key > best) {
                best = key;
                at = c;
            }
        }
        out[r] = at;
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=torch.int64)
        library.argmax(x, out, out.numel(), x.shape[-1])
        return out
