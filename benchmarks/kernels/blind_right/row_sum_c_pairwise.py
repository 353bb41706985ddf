# problem: row_sum
# implementation: c
# mechanism: halves are summed on their own down to eight elements, in single precision

import numpy as np
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

static float pairwise(const float *x, int64_t count) {
    if (count <= 8) {
        float total = 0.0f;
        for (int64_t i = 0; i < count; i++)
            total += x[i];
        return total;
    }
    int64_t half = count / 2;
    return pairwise(x, half) + pairwise(x + half, count - half);
}

void row_sum(const float *x, float *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++)
        out[r] = pairwise(x + r * width, width);
}
"""


class ModelNew:
    def __call__(self, x):
        x = np.ascontiguousarray(x)
        out = np.empty(x.shape[:-1], dtype=x.dtype)
        library.row_sum(x, out, out.size, x.shape[-1])
        return out
