# problem: mla_projection
# implementation: c
# mechanism: down, root mean square, up, one token after another

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void project(const float *x, const float *down, const float *scale, const float *up,
             float *latent, float *out, int64_t tokens, int64_t width, int64_t rank,
             int64_t outputs) {
    for (int64_t t = 0; t < tokens; t++) {
        double square = 0.0;
        for (int64_t r = 0; r < rank; r++) {
            double total = 0.0;
            for (int64_t d = 0; d < width; d++)
                total += (double)x[t * width + d] * (double)down[d * rank + r];
            latent[r] = (float)total;
            square += total * total;
        }
        double root = 1.0 / sqrt(square / (double)rank + 1e-6);
        for (int64_t o = 0; o < outputs; o++) {
            double total = 0.0;
            for (int64_t r = 0; r < rank; r++)
                total += latent[r] * root * scale[r] * (double)up[r * outputs + o];
            out[t * outputs + o] = (float)total;
        }
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x, down, scale, up):
        x, down, scale, up = x.contiguous(), down.contiguous(), scale.contiguous(), up.contiguous()
        tokens, width = x.shape
        rank, outputs = up.shape
        latent = torch.empty(rank, dtype=x.dtype)
        out = torch.empty((tokens, outputs), dtype=x.dtype)
        library.project(x, down, scale, up, latent, out, tokens, width, rank, outputs)
        return out
