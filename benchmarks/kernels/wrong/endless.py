# problem: mla_absorbed
# implementation: torch
# mechanism: never comes back
# origin: verification hangs in mindspore-ai/akg's log of changes

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, up_k, c, up_v):
        total = q
        while True:
            total = torch.tanh(total)
