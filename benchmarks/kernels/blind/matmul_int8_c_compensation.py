# problem: matmul_int8
# implementation: c
# mechanism: left values are shifted to unsigned and the shift is taken back with column sums of sixteen bits, which overflow
# origin: the s8s8 compensation of oneDNN and VNNI kernels, with too few bits for it

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void matmul_int8(const int8_t *a, const int8_t *b, int32_t *out,
                 int64_t m, int64_t n, int64_t k) {
    for (int64_t column = 0; column < n; column++) {
        uint16_t sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum = (uint16_t)(sum + (uint16_t)b[i * n + column]);
        int32_t compensation = 128 * (int32_t)(int16_t)sum;
        for (int64_t row = 0; row < m; row++) {
            int32_t total = 0;
            for (int64_t i = 0; i < k; i++)
                total += ((int32_t)a[row * k + i] + 128) * (int32_t)b[i * n + column];
            out[row * n + column] = total - compensation;
        }
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty((a.shape[0], b.shape[1]), dtype=torch.int32)
        library.matmul_int8(a, b, out, a.shape[0], b.shape[1], a.shape[1])
        return out
