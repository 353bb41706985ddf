# problem: linear_recurrence
# implementation: c
# mechanism: the state of a channel runs through time

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void recur(const float *a, const float *x, float *out, int64_t batch, int64_t time, int64_t width) {
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < width; c++) {
            float state = 0.0f;
            for (int64_t t = 0; t < time; t++) {
                int64_t place = (b * time + t) * width + c;
                state = a[place] * state + x[place];
                out[place] = state;
            }
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, x):
        a, x = a.contiguous(), x.contiguous()
        out = torch.empty_like(x)
        library.recur(a, x, out, *x.shape)
        return out
