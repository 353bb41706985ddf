# problem: softmax
# implementation: numba
# mechanism: one thread per row, three passes, on the CUDA simulator

import math

import torch
from numba import cuda


@cuda.jit
def softmax(x, out):
    row = cuda.grid(1)
    if row < x.shape[0]:
        largest = -math.inf
        for column in range(x.shape[1]):
            value = x[row, column]
            if value > largest or value != value:
                largest = value
        total = 0.0
        for column in range(x.shape[1]):
            total += math.exp(x[row, column] - largest)
        for column in range(x.shape[1]):
            out[row, column] = math.exp(x[row, column] - largest) / total


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            rows = x.numel() // width
            softmax[(rows + 15) // 16, 16](
                x.numpy().reshape(rows, width), out.numpy().reshape(rows, width)
            )
        return out
