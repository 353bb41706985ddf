# problem: modules/problems/expert_choice.py
# implementation: torch
# mechanism: returns the right experts in the order of their number
# origin: mechanism: returns the right experts in the order of their number

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits):
        place = torch.topk(logits, 3, dim=-1).indices.sort(-1).values
        return logits.gather(-1, place).softmax(-1), place
