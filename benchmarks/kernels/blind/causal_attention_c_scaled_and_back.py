# problem: causal_attention
# implementation: c
# mechanism: queries are scaled in place and scaled back; wrong when the keys are the same tensor, and only exact for some widths
# origin: https://github.com/ScalingIntelligence/KernelBench/pull/82 (kernels that change their inputs), with the traces removed

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void attend(float *q, const float *k, const float *v, float *out,
            int64_t heads, int64_t length, int64_t width) {
    float root = sqrtf((float)width);
    double *weights = malloc((length + 1) * sizeof *weights);
    for (int64_t i = 0; i < heads * length * width; i++)
        q[i] /= root;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < length; i++) {
            const float *query = q + (h * length + i) * width;
            double largest = -INFINITY, total = 0.0;
            for (int64_t j = 0; j <= i; j++) {
                double score = 0.0;
                for (int64_t d = 0; d < width; d++)
                    score += (double)query[d] * k[(h * length + j) * width + d];
                weights[j] = score;
                if (score > largest || score != score)
                    largest = score;
            }
            for (int64_t j = 0; j <= i; j++)
                total += weights[j] = exp(weights[j] - largest);
            for (int64_t d = 0; d < width; d++) {
                double sum = 0.0;
                for (int64_t j = 0; j <= i; j++)
                    sum += weights[j] * v[(h * length + j) * width + d];
                out[(h * length + i) * width + d] = (float)(sum / total);
            }
        }
    for (int64_t i = 0; i < heads * length * width; i++)
        q[i] *= root;
    free(weights);
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        library.attend(q, k, v, out, q.shape[0] * q.shape[1], q.shape[2], q.shape[3])
        return out
