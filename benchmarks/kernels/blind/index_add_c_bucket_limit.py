# problem: index_add
# implementation: c
# mechanism: every target keeps a list of at most sixteen rows; what comes after the sixteenth is dropped
# origin: bucketed scatter kernels with a fixed capacity (expert capacity in mixture-of-experts dispatch drops tokens so)

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>

#define CAPACITY 16

void index_add(const float *base, const int64_t *index, const float *rows, float *out,
               int64_t targets, int64_t count, int64_t width) {
    int64_t *listed = malloc((targets * CAPACITY + 1) * sizeof *listed);
    int64_t *filled = calloc(targets + 1, sizeof *filled);
    for (int64_t i = 0; i < count; i++) {
        int64_t target = index[i];
        if (filled[target] < CAPACITY)
            listed[target * CAPACITY + filled[target]++] = i;
    }
    for (int64_t t = 0; t < targets; t++)
        for (int64_t c = 0; c < width; c++) {
            float total = base[t * width + c];
            for (int64_t i = 0; i < filled[t]; i++)
                total += rows[listed[t * CAPACITY + i] * width + c];
            out[t * width + c] = total;
        }
    free(listed);
    free(filled);
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        base, index, rows = base.contiguous(), index.contiguous(), rows.contiguous()
        out = torch.empty_like(base)
        if out.numel():
            library.index_add(
                base, index, rows, out, base.shape[0], index.numel(), base.numel() // base.shape[0]
            )
        return out
