# problem: modules/problems/swish_matmul.py
# implementation: c
# mechanism: product and activation in one loop

import math

import torch
from torchstone_kernel import library


C_SOURCE = r"""
#include <math.h>

void fused(const float *x, const float *w, const float *s, float *out, long rows, long n, long m) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < m; j++) {
            float total = 0;
            for (long k = 0; k < n; k++) total += x[i * n + k] * w[j * n + k];
            out[i * m + j] = total / (1 + expf(-total)) + s[j];
        }
}
"""


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs, bias=False)
        self.shift = torch.nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        x = x.contiguous()
        w, s = self.linear.weight.detach().contiguous(), self.shift.detach().contiguous()
        out = torch.empty(x.shape[0], w.shape[0])
        library.fused(x, w, s, out, x.shape[0], x.shape[1], w.shape[0])
        return out
