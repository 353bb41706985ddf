# problem: relu
# implementation: numba
# mechanism: one thread per element, on the CUDA simulator

import torch
from numba import cuda


@cuda.jit
def relu(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        value = x[i]
        out[i] = 0.0 if value <= 0 else value


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        size = x.numel()
        if size:
            relu[(size + 63) // 64, 64](x.numpy().reshape(-1), out.numpy().reshape(-1))
        return out
