# problem: attention
# implementation: torch
# mechanism: torch's own fused attention

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v).contiguous()
