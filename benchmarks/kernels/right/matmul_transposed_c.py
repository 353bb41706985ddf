# problem: matmul_transposed
# implementation: c
# mechanism: dot products of rows, for numpy

import numpy as np
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void product(const float *a, const float *b, float *out, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double total = 0.0;
            for (int64_t e = 0; e < k; e++)
                total += (double)a[i * k + e] * (double)b[j * k + e];
            out[i * n + j] = (float)total;
        }
}
"""


class ModelNew:
    def __call__(self, a, b):
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        out = np.empty((a.shape[0], b.shape[0]), dtype=a.dtype)
        library.product(a, b, out, a.shape[0], b.shape[0], a.shape[1])
        return out
