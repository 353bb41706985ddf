# problem: softmax
# implementation: c
# mechanism: one pass with a running maximum in a static helper

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

typedef struct { double largest, total; } tally;

static tally add(tally seen, double value) {
    if (value > seen.largest) {
        double kept = seen.total == 0.0 ? 0.0 : seen.total * exp(seen.largest - value);
        seen.total = kept + exp(value - value);
        seen.largest = value;
    } else if (value != -INFINITY) {
        seen.total += exp(value - seen.largest);
    }
    return seen;
}

void softmax(const float *restrict x, float *restrict out, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        tally seen = {-INFINITY, 0.0};
        for (int64_t c = 0; c < width; c++)
            seen = add(seen, x[r * width + c]);
        for (int64_t c = 0; c < width; c++)
            out[r * width + c] = (float)(exp(x[r * width + c] - seen.largest) / seen.total);
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            library.softmax(x, out, x.numel() // x.shape[-1], x.shape[-1])
        return out
