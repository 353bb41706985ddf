# problem: matmul_int8
# implementation: c
# mechanism: columns of b are packed once, then rows against columns in four running sums of 32 bits

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>

static int32_t dot(const int8_t *restrict left, const int8_t *restrict right, int64_t count) {
    int32_t one = 0, two = 0, three = 0, four = 0;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        one += (int32_t)left[i] * right[i];
        two += (int32_t)left[i + 1] * right[i + 1];
        three += (int32_t)left[i + 2] * right[i + 2];
        four += (int32_t)left[i + 3] * right[i + 3];
    }
    for (; i < count; i++)
        one += (int32_t)left[i] * right[i];
    return one + two + three + four;
}

void matmul_int8(const int8_t *a, const int8_t *b, int32_t *out,
                 int64_t m, int64_t n, int64_t k) {
    int8_t *column = malloc(k > 0 ? (size_t)k : 1);
    if (!column)
        abort();
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < k; i++)
            column[i] = b[i * n + j];
        for (int64_t row = 0; row < m; row++)
            out[row * n + j] = dot(a + row * k, column, k);
    }
    free(column);
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty((a.shape[0], b.shape[1]), dtype=torch.int32)
        library.matmul_int8(a, b, out, a.shape[0], b.shape[1], a.shape[1])
        return out
