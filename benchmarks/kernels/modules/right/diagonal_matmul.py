# problem: modules/problems/diagonal_matmul.py
# implementation: c
# mechanism: every row times its number

import torch
from torchstone_kernel import library


C_SOURCE = r"""
void scale(const float *a, const float *b, float *out, long rows, long columns) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) out[i * columns + j] = a[i] * b[i * columns + j];
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(b)
        library.scale(a, b, out, *b.shape)
        return out
