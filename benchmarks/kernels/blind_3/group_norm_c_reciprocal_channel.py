# problem: group_norm
# implementation: c
# mechanism: the channel is i * (1 / length) in float, one too low at lengths such as 41 or 47
# origin: written for this set; no public source looked up

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void group_norm(const float *x, const float *weight, const float *bias, float *out,
                int64_t batch, int64_t channels, int64_t length, int64_t groups) {
    int64_t each = channels / groups, size = each * length;
    const float per_channel = 1.0f / (float)length;
    for (int64_t g = 0; g < batch * groups; g++) {
        const float *part = x + g * size;
        const float *w = weight + (g % groups) * each, *b = bias + (g % groups) * each;
        double mean = 0.0, variance = 0.0;
        for (int64_t i = 0; i < size; i++)
            mean += part[i];
        mean /= (double)size;
        for (int64_t i = 0; i < size; i++)
            variance += (part[i] - mean) * (part[i] - mean);
        double scale = 1.0 / sqrt(variance / (double)size + 1e-5);
        for (int64_t i = 0; i < size; i++) {
            float place = (float)i * per_channel;
            int64_t channel = (int64_t)place;
            out[g * size + i] = (float)((part[i] - mean) * scale * w[channel] + b[channel]);
        }
    }
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            library.group_norm(x, weight, bias, out, *x.shape, self.groups)
        return out
