# problem: conv1d
# implementation: c
# mechanism: what is outside is skipped, the sum starts with the bias

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

void conv1d(const float *x, const float *weight, const float *bias, float *out, int64_t batch,
            int64_t channels, int64_t length, int64_t outputs) {
    for (int64_t b = 0; b < batch; b++)
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t t = 0; t < length; t++) {
                double total = bias[o];
                for (int64_t i = 0; i < channels; i++)
                    for (int64_t k = 0; k < 3; k++) {
                        int64_t place = t + k - 1;
                        if (place >= 0 && place < length)
                            total += (double)x[(b * channels + i) * length + place] *
                                     (double)weight[(o * channels + i) * 3 + k];
                    }
                out[(b * outputs + o) * length + t] = (float)total;
            }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        batch, channels, length = x.shape
        out = torch.empty((batch, weight.shape[0], length), dtype=x.dtype)
        library.conv1d(x, weight, bias, out, batch, channels, length, weight.shape[0])
        return out
