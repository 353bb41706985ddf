# problem: attention
# implementation: triton
# mechanism: when the maximum grows by less than a fiftieth, the sums so far are not rescaled, though the new maximum is used
# origin: https://github.com/Dao-AILab/flash-attention (conditional rescaling of the fourth version, without its correction)

import math

import torch
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, scale,
           WIDTH: tl.constexpr, REAL: tl.constexpr, SPAN: tl.constexpr):
    query, head = tl.program_id(0), tl.program_id(1)
    wide = tl.arange(0, WIDTH)
    there = wide < REAL
    q = tl.load(q_ptr + (head * queries + query) * REAL + wide, mask=there, other=0.0)
    q = q.to(tl.float32) * scale
    largest = float("-inf")
    below = 0.0
    above = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, keys, SPAN):
        at = start + tl.arange(0, SPAN)
        inside = (at < keys)[:, None] & there[None, :]
        place = (head * keys + at)[:, None] * REAL + wide[None, :]
        k = tl.load(k_ptr + place, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + place, mask=inside, other=0.0).to(tl.float32)
        scores = tl.where(at < keys, tl.sum(k * q[None, :], axis=1), float("-inf"))
        new = tl.maximum(largest, tl.max(scores, axis=0))
        shrink = tl.where(new - largest > 0.02, tl.exp(largest - new), 1.0)
        weights = tl.exp(scores - new)
        below = below * shrink + tl.sum(weights, axis=0)
        above = above * shrink + tl.sum(weights[:, None] * v, axis=0)
        largest = new
    tl.store(out_ptr + (head * queries + query) * REAL + wide, above / below, mask=there)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        batch, heads, queries, width = q.shape
        if out.numel():
            attend[(queries, batch * heads)](
                q, k, v, out, queries, k.shape[2], 1.0 / math.sqrt(width),
                WIDTH=triton.next_power_of_2(width), REAL=width, SPAN=8,
            )
        return out
