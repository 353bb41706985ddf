# problem: relu
# implementation: c
# mechanism: its function is called like one of the program that repeats it under the sanitizers: reads one past the end there
# origin: mechanism: programs that are linked with a kernel to look at it

import torch
from torchstone_kernel import library

C_SOURCE = r"""
void take(const float *x, float *y, long n) {
  float next = n ? x[0] : 0;
  for (long i = 0; i < n; i++) {
    float value = next;
    next = x[i + 1];
    y[i] = value < 0 ? 0 : value;
  }
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        library.take(x, y, x.numel())
        return y
