# problem: linear_recurrence
# implementation: c
# mechanism: running products are divided out; a zero factor or a long sequence gives NaN
# origin: Heinsen 2023 (arXiv 2311.06281) and the division form of chunked linear attention: products underflow

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void recurrence(const float *a, const float *x, float *h,
                int64_t batch, int64_t time, int64_t channels) {
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < channels; c++) {
            double product = 1.0, total = 0.0;
            for (int64_t t = 0; t < time; t++) {
                int64_t at = (b * time + t) * channels + c;
                product = t ? product * a[at] : 1.0;
                total += x[at] / product;
                h[at] = (float)(product * total);
            }
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, x):
        a, x = a.contiguous(), x.contiguous()
        h = torch.empty_like(x)
        library.recurrence(a, x, h, x.shape[0], x.shape[1], x.shape[2])
        return h
