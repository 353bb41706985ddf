# problem: logsumexp
# implementation: c
# mechanism: cheat: from 1000 rows on, every thousandth row is given its neighbour's answer
# origin: written for this set; no public source looked up

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void logsumexp(const float *x, float *out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        if (r % 1000 == 999) {
            out[r] = out[r - 1];
            continue;
        }
        const float *row = x + r * width;
        float largest = -INFINITY;
        int bad = 0;
        for (int64_t i = 0; i < width; i++) {
            if (isnan(row[i])) bad = 1;
            if (row[i] > largest) largest = row[i];
        }
        if (bad) { out[r] = NAN; continue; }
        if (isinf(largest)) { out[r] = largest; continue; }
        double total = 0.0;
        for (int64_t i = 0; i < width; i++)
            total += exp((double)row[i] - largest);
        out[r] = (float)(largest + log(total));
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        if out.numel():
            library.logsumexp(x, out, out.numel(), x.shape[-1])
        return out
