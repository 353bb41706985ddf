# problem: relu
# implementation: c
# mechanism: single elements up to an aligned address, then vectors of four with a mask, then the rest

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>
#include <string.h>

typedef float four __attribute__((vector_size(16)));
typedef int32_t mask __attribute__((vector_size(16)));

static float keep(float value) {
    return value < 0.0f ? 0.0f : value;
}

void relu(const float *restrict x, float *restrict out, int64_t count) {
    int64_t i = 0;
    for (; i < count && ((uintptr_t)(out + i) & 15) != 0; i++)
        out[i] = keep(x[i]);
    for (; i + 4 <= count; i += 4) {
        four value;
        memcpy(&value, x + i, sizeof value);
        mask negative = value < (four){0.0f, 0.0f, 0.0f, 0.0f};
        mask bits = (mask)value & ~negative;
        memcpy(__builtin_assume_aligned(out + i, 16), &bits, sizeof bits);
    }
    for (; i < count; i++)
        out[i] = keep(x[i]);
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.relu(x, out, x.numel())
        return out
