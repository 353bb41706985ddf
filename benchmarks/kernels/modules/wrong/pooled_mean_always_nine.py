# problem: modules/problems/pooled_mean.py
# implementation: c
# mechanism: divides by nine at the edge, too, in the last row
# origin: mechanism: divides by nine at the edge, too, in the last row

import torch
from torchstone_kernel import library


C_SOURCE = r"""
void pool(const float *x, float *out, long planes, long h, long w) {
    for (long p = 0; p < planes; p++)
        for (long i = 0; i < h; i++)
            for (long j = 0; j < w; j++) {
                float total = 0;
                long count = 0;
                for (long a = i - 1; a <= i + 1; a++)
                    for (long b = j - 1; b <= j + 1; b++)
                        if (a >= 0 && a < h && b >= 0 && b < w) {
                            total += x[(p * h + a) * w + b];
                            count++;
                        }
                out[(p * h + i) * w + j] = total / (float)(i > 40 && i == h - 1 ? 9 : count);
            }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.pool(x, out, x.shape[0] * x.shape[1], x.shape[2], x.shape[3])
        return out
