# problem: relu
# implementation: c
# mechanism: one loop; NaN stays NaN

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void relu(const float *x, float *out, int64_t size) {
    for (int64_t i = 0; i < size; i++)
        out[i] = x[i] <= 0.0f ? 0.0f : x[i];
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.relu(x, out, x.numel())
        return out
