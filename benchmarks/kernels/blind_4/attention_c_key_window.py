# problem: attention
# implementation: c
# mechanism: the scores of a query stand in an array of fixed size on the stack; keys past the 1024th are left out without a word
# origin: shape assumptions written into generated kernels (AgentKernelArena, arXiv 2605.16819); flash-attention-minimal issue 1 lists the sizes that its kernel silently assumes

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

#define MOST 1024

void attention(const float *q, const float *k, const float *v, float *out, int64_t heads,
               int64_t queries, int64_t keys, int64_t width, int64_t wide) {
    float scores[MOST];
    double scale = 1.0 / sqrt((double)width);
    int64_t seen = keys < MOST ? keys : MOST;
    for (int64_t h = 0; h < heads; h++) {
        for (int64_t i = 0; i < queries; i++) {
            const float *query = q + (h * queries + i) * width;
            float largest = -INFINITY;
            for (int64_t j = 0; j < seen; j++) {
                const float *key = k + (h * keys + j) * width;
                double dot = 0.0;
                for (int64_t d = 0; d < width; d++)
                    dot += (double)query[d] * key[d];
                scores[j] = (float)(dot * scale);
                if (scores[j] > largest || scores[j] != scores[j])
                    largest = scores[j];
            }
            double total = 0.0;
            for (int64_t j = 0; j < seen; j++) {
                scores[j] = expf(scores[j] - largest);
                total += scores[j];
            }
            for (int64_t d = 0; d < wide; d++) {
                double sum = 0.0;
                for (int64_t j = 0; j < seen; j++)
                    sum += (double)scores[j] * v[(h * keys + j) * wide + d];
                out[(h * queries + i) * wide + d] = (float)(sum / total);
            }
        }
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
        if out.numel() and k.shape[-2]:
            library.attention(
                q, k, v, out, q.shape[0] * q.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]
            )
        return out
