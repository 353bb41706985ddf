# problem: batch_norm_inference
# implementation: c
# mechanism: the input is made contiguous but the statistics are not, so a column of a table of statistics is misread
# origin: https://github.com/pytorch/pytorch/issues/147828 (strides that a custom kernel is not told of)

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void batch_norm(const float *x, const float *mean, const float *spread, const float *weight,
                const float *bias, float *out, int64_t batch, int64_t channels, int64_t length) {
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < channels; c++) {
            double scale = weight[c] / sqrt((double)spread[c] * spread[c] + 1e-5);
            int64_t start = (b * channels + c) * length;
            for (int64_t i = 0; i < length; i++)
                out[start + i] = (float)(((double)x[start + i] - mean[c]) * scale + bias[c]);
        }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x, mean, spread, weight, bias):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.batch_norm(x, mean, spread, weight, bias, out, *x.shape)
        return out
