# problem: matmul_int8
# implementation: c
# mechanism: 32-bit sums of 8-bit products

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void matmul(const int8_t *a, const int8_t *b, int32_t *out, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int32_t total = 0;
            for (int64_t e = 0; e < k; e++)
                total += (int32_t)a[i * k + e] * (int32_t)b[e * n + j];
            out[i * n + j] = total;
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty((m, n), dtype=torch.int32)
        library.matmul(a, b, out, m, n, k)
        return out
