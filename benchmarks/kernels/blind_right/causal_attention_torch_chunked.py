# problem: causal_attention
# implementation: torch
# mechanism: keys come in chunks of seven with a running maximum and a running sum, which are rescaled as it grows

import math

import torch

CHUNK = 7


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        wide = torch.promote_types(q.dtype, torch.float32)
        length, width = q.shape[-2:]
        scaled = q.to(wide) / math.sqrt(width)
        largest = scaled.new_full((*q.shape[:-1], 1), -math.inf)
        below = torch.zeros_like(largest)
        above = torch.zeros(q.shape, dtype=wide)
        place = torch.arange(length).unsqueeze(1)
        for start in range(0, length, CHUNK):
            keys, values = k[..., start : start + CHUNK, :], v[..., start : start + CHUNK, :]
            scores = scaled @ keys.to(wide).transpose(-2, -1)
            ahead = torch.arange(start, start + keys.shape[-2]) > place
            scores = scores.masked_fill(ahead, -math.inf)
            new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
            shift = torch.where(new == -math.inf, torch.zeros_like(new), new)
            weights = torch.exp(scores - shift)
            shrink = torch.exp(largest - shift)
            below = below * shrink + weights.sum(dim=-1, keepdim=True)
            above = above * shrink + weights @ values.to(wide)
            largest = new
        return (above / below).to(q.dtype)
