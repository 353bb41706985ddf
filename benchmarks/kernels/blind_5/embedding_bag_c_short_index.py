# problem: embedding_bag
# implementation: c
# mechanism: indices are packed into 16 bits before the gather, so rows from 65536 on are taken
#   from the start of the table
# origin: huggingface/transformers issue 2825 (token ids cast to uint16, vocabulary of
#   119547), urvashik/knnlm issue 6, kekzl/imp pull 2056 (experts beyond index 255 never chosen)

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>

#define LONGEST 64

void gather(const float *restrict table, const int64_t *restrict bags, float *restrict out,
            int64_t count, int64_t length, int64_t width) {
    uint16_t packed[LONGEST];
    for (int64_t bag = 0; bag < count; bag++) {
        float *to = out + bag * width;
        for (int64_t c = 0; c < width; c++)
            to[c] = 0.0f;
        for (int64_t start = 0; start < length; start += LONGEST) {
            int64_t some = length - start < LONGEST ? length - start : LONGEST;
            for (int64_t i = 0; i < some; i++)
                packed[i] = (uint16_t)bags[bag * length + start + i];
            for (int64_t i = 0; i < some; i++) {
                const float *from = table + (int64_t)packed[i] * width;
                for (int64_t c = 0; c < width; c++)
                    to[c] += from[c];
            }
        }
    }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, table, bags):
        table, bags = table.contiguous(), bags.contiguous()
        bags = torch.where(bags < 0, bags + table.shape[0], bags)
        out = torch.empty(bags.shape[0], table.shape[1], dtype=table.dtype)
        if out.numel():
            library.gather(table, bags, out, bags.shape[0], bags.shape[1], table.shape[1])
        return out
