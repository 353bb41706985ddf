# problem: row_sum
# implementation: c
# mechanism: the sum is kept in half the bits: every term is cut to 12 bits of mantissa
# origin: precision downgrade in DeepReinforce's list; the TF32 form of it

import numpy as np
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>
#include <string.h>

static float cut(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0xfffff000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

void row_sum(const float *x, float *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        float total = 0.0f;
        for (int64_t c = 0; c < width; c++)
            total = cut(total + cut(x[r * width + c]));
        out[r] = total;
    }
}
"""


class ModelNew:
    def __call__(self, x):
        x = np.ascontiguousarray(x)
        out = np.empty(x.shape[:-1], dtype=x.dtype)
        library.row_sum(x, out, x.shape[0], x.shape[1])
        return out
