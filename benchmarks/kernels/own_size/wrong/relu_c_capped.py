# problem: own_size/problems/relu.py
# implementation: c
# mechanism: at most two million elements are written
# origin: right at every size below the problem's own

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>
void run(const float *x, float *y, long n) {
  long most = n < 2000000 ? n : 2000000;
  for (long i = 0; i < most; i++) y[i] = x[i] < 0 ? 0 : x[i];
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.run(x, y, x.numel())
        return y
