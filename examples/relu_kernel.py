"""A kernel in C for the shipped problem `relu`: torchstone kernel verify relu THIS_FILE --impl c"""

import torch
from torchstone_kernel import library

C_SOURCE = r"""
void relu(const float *x, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.relu(x, y, x.numel())
        return y
