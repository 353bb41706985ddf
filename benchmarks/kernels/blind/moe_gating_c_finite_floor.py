# problem: moe_gating
# implementation: c
# mechanism: the search for the next best starts at -1e30, so masked experts are never found and expert zero is named again
# origin: top-k kernels that start from a finite floor; masked experts have a score of minus infinity

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void gate(const float *scores, float *weights, int64_t *index,
          int64_t tokens, int64_t experts, int64_t chosen) {
    for (int64_t t = 0; t < tokens; t++) {
        const float *row = scores + t * experts;
        float *weight = weights + t * chosen;
        int64_t *at = index + t * chosen;
        for (int64_t k = 0; k < chosen; k++) {
            float best = -1e30f;
            at[k] = 0;
            for (int64_t e = 0; e < experts; e++) {
                int taken = 0;
                for (int64_t j = 0; j < k; j++)
                    taken |= at[j] == e;
                if (!taken && row[e] > best) {
                    best = row[e];
                    at[k] = e;
                }
            }
        }
        double total = 0.0;
        for (int64_t k = 0; k < chosen; k++)
            total += exp((double)row[at[k]] - row[at[0]]);
        for (int64_t k = 0; k < chosen; k++)
            weight[k] = (float)(exp((double)row[at[k]] - row[at[0]]) / total);
    }
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen

    def forward(self, scores):
        scores = scores.contiguous()
        tokens, experts = scores.shape
        weights = torch.empty((tokens, self.chosen), dtype=scores.dtype)
        index = torch.empty((tokens, self.chosen), dtype=torch.int64)
        library.gate(scores, weights, index, tokens, experts, self.chosen)
        return weights, index
