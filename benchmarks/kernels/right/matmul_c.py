# problem: matmul
# implementation: c
# mechanism: rows against rows of the transposed factor, blocks of eight

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void matmul(const float *a, const float *b, float *out, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float total = 0.0f;
            int64_t e = 0;
            for (; e + 8 <= k; e += 8) {
                float part = 0.0f;
                for (int64_t u = 0; u < 8; u++)
                    part += a[i * k + e + u] * b[(e + u) * n + j];
                total += part;
            }
            for (; e < k; e++)
                total += a[i * k + e] * b[e * n + j];
            out[i * n + j] = total;
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty((m, n), dtype=a.dtype)
        library.matmul(a, b, out, m, n, k)
        return out
