# problem: relu
# implementation: c
# mechanism: only positive values are written; the zeros are those that fresh memory happens to hold
# origin: ScalingIntelligence/KernelBench#82, Sakana AI CUDA Engineer: an answer taken from unwritten memory

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void relu(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(x[i] <= 0.0f)) y[i] = x[i];
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.relu(x, y, x.numel())
        return y
