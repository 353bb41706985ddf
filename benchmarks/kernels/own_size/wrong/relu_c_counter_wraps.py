# problem: own_size/problems/relu.py
# implementation: c
# mechanism: the index is kept in 21 bits: elements beyond it are never written
# origin: right at every size below the problem's own

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <math.h>
#include <stdint.h>
void run(const float *x, float *y, long n) {
  for (uint32_t i = 0; i < n; i++) { uint32_t at = i & 0x1FFFFF; y[at] = x[at] < 0 ? 0 : x[at]; }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.run(x, y, x.numel())
        return y
