# problem: layer_norm
# implementation: c
# mechanism: two passes over a row in double precision

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void layer_norm(const float *x, const float *weight, const float *bias, float *out,
                int64_t rows, int64_t width, double epsilon) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        double mean = 0.0, variance = 0.0;
        for (int64_t c = 0; c < width; c++)
            mean += row[c];
        mean /= (double)width;
        for (int64_t c = 0; c < width; c++)
            variance += (row[c] - mean) * (row[c] - mean);
        double scale = 1.0 / sqrt(variance / (double)width + epsilon);
        for (int64_t c = 0; c < width; c++)
            out[r * width + c] = (float)((row[c] - mean) * scale * weight[c] + bias[c]);
    }
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            library.layer_norm(x, weight, bias, out, x.numel() // width, width, self.epsilon)
        return out
