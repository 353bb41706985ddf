# problem: variance
# implementation: torch
# mechanism: in double precision, and back

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        wide = x.double()
        wide = wide - wide.mean(dim=-1, keepdim=True)
        wide.square_()
        return (wide.sum(dim=-1) / max(x.shape[-1] - 1, 0) if x.shape[-1] > 1
                else torch.full(x.shape[:-1], float("nan"), dtype=torch.float64)).to(x.dtype)
