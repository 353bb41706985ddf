# problem: relu
# implementation: c
# mechanism: elements before the first 16-byte boundary are peeled off, and taken off the end of the tail a second time: for an input that starts off a boundary (a slice of a longer one) up to three last elements stay zero
# origin: a contiguous view need not start on a 16-byte boundary (review of NVIDIA/TensorRT-LLM pull request 17987); the peel loop's error is own

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void relu(const float *x, float *out, int64_t count) {
    int64_t before = (int64_t)(((16 - ((uintptr_t)x & 15)) & 15) / 4);
    if (before > count)
        before = count;
    for (int64_t i = 0; i < before; i++)
        out[i] = x[i] < 0.0f ? 0.0f : x[i];
    int64_t body = (count - before) / 4 * 4;
    for (int64_t i = before; i < before + body; i += 4)
        for (int64_t j = i; j < i + 4; j++)
            out[j] = x[j] < 0.0f ? 0.0f : x[j];
    for (int64_t i = before + body; i < count - before; i++)
        out[i] = x[i] < 0.0f ? 0.0f : x[i];
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.zeros_like(x)
        if x.numel():
            library.relu(x, out, x.numel())
        return out
