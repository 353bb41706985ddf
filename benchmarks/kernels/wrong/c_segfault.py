# problem: gelu
# implementation: c
# mechanism: writes through a null pointer
# origin: mechanism: a candidate that ends its process

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void gelu(const float *x, float *out, int64_t size) {
    float *nowhere = (float *)0;
    for (int64_t i = 0; i < size; i++)
        nowhere[i] = x[i];
    (void)out;
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.gelu(x, out, x.numel())
        return out
