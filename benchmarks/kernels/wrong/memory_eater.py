# problem: moe_dispatch
# implementation: torch
# mechanism: takes memory until none is left
# origin: mechanism: exhaustion of memory

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, experts, index, weights):
        taken = []
        while True:
            taken.append(torch.ones(1 << 26))
