# problem: argmax
# implementation: numba
# mechanism: four interleaved lanes are merged in lane order, so of equal maxima an earlier one may lose
# origin: mechanism: a parallel argmax must break ties by index when it merges (torch documents the first)

import numba
import torch


@numba.njit
def argmax(x, out):
    for row in range(x.shape[0]):
        best = -1
        for lane in range(4):
            own = -1
            for column in range(lane, x.shape[1], 4):
                if own < 0 or x[row, column] > x[row, own]:
                    own = column
            if own >= 0 and (best < 0 or x[row, own] > x[row, best]):
                best = own
        out[row] = best


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], dtype=torch.int64)
        argmax(x.numpy(), out.numpy())
        return out
