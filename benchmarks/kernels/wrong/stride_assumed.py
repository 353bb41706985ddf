# problem: batched_matmul
# implementation: numba
# mechanism: the flat memory of the input is read as if it were contiguous, whatever its strides
# origin: mechanism: wrong stride on a non-contiguous input

import numba
import numpy as np
import torch


@numba.njit
def bmm(a, b, out, batch, m, n, k):
    for i in range(batch):
        for r in range(m):
            for c in range(n):
                total = 0.0
                for e in range(k):
                    total += float(a[(i * m + r) * k + e]) * float(b[(i * k + e) * n + c])
                out[(i * m + r) * n + c] = total


def flat(tensor):
    return torch.as_strided(tensor, (tensor.numel(),), (1,)).numpy()


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        batch, m, k = a.shape
        n = b.shape[2]
        out = torch.empty((batch, m, n), dtype=a.dtype)
        bmm(flat(a), flat(b), out.numpy().reshape(-1), batch, m, n, k)
        return out
