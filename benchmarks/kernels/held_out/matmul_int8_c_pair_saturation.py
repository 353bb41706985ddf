# problem: matmul_int8
# implementation: c
# mechanism: pairs of products pass through a saturating 16 bit sum; four times -128 loses one
# origin: uxlfoundation/oneDNN#717, pytorch/pytorch#136746: a 16 bit accumulator between int8 and int32

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

static int16_t pair(int8_t a0, int8_t b0, int8_t a1, int8_t b1) {
    int32_t sum = (int32_t)a0 * b0 + (int32_t)a1 * b1;
    if (sum > INT16_MAX) return INT16_MAX;
    if (sum < INT16_MIN) return INT16_MIN;
    return (int16_t)sum;
}

void matmul(const int8_t *a, const int8_t *b, int32_t *c,
            int64_t rows, int64_t inner, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            int32_t total = 0;
            int64_t k = 0;
            for (; k + 1 < inner; k += 2)
                total += pair(a[i * inner + k], b[k * columns + j],
                              a[i * inner + k + 1], b[(k + 1) * columns + j]);
            for (; k < inner; k++)
                total += (int32_t)a[i * inner + k] * b[k * columns + j];
            c[i * columns + j] = total;
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty((a.shape[0], b.shape[1]), dtype=torch.int32)
        library.matmul(a, b, c, a.shape[0], a.shape[1], b.shape[1])
        return c
