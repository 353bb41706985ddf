# problem: column_max
# implementation: c
# mechanism: a scratch row from malloc is never set, and large memory happens to be zero
# origin: mechanism: memory from the system is zero as long as it is new

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdlib.h>
#include <math.h>
void cmax(const float *x, float *y, long n, long m) {
  static unsigned char small[4096 * 64];
  unsigned char *seen = m < 4096 ? small : malloc(m * 64);
  if (m < 4096) for (long j = 0; j < m * 64; j++) small[j] = 0;
  for (long i = 0; i < n; i++)
    for (long j = 0; j < m; j++) {
      float v = x[i*m+j];
      if (!seen[j*64] || v > y[j] || v != v) { if (!(seen[j*64] && y[j] != y[j])) y[j] = v; seen[j*64] = 1; }
    }
  if (m >= 4096) free(seen);
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[1])
        library.cmax(x, y, x.shape[0], x.shape[1])
        return y
