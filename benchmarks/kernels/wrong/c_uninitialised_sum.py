# problem: batched_matmul
# implementation: c
# mechanism: an accumulator that nobody set to zero
# origin: mechanism: uninitialised memory in C

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void bmm(const float *a, const float *b, float *out, int64_t batch, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < batch * m * n; i++) {
        float total;
        int64_t group = i / (m * n), r = i / n % m, c = i % n;
        for (int64_t e = 0; e < k; e++)
            total += a[(group * m + r) * k + e] * b[(group * k + e) * n + c];
        out[i] = total;
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty((a.shape[0], a.shape[1], b.shape[2]), dtype=a.dtype)
        library.bmm(a, b, out, a.shape[0], a.shape[1], b.shape[2], a.shape[2])
        return out
