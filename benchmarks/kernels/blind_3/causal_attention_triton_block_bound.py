# problem: causal_attention
# implementation: triton
# mechanism: the loop over keys ends at the block of the first query: longer sequences lose keys
# origin: written for this set; no public source looked up

import torch
import triton
import triton.language as tl


@triton.jit
def attend(q, k, v, out, length, scale, WIDTH: tl.constexpr, REAL: tl.constexpr,
           QUERIES: tl.constexpr, KEYS: tl.constexpr):
    head, block = tl.program_id(0), tl.program_id(1)
    start = head * length * REAL
    rows = block * QUERIES + tl.arange(0, QUERIES)
    d = tl.arange(0, WIDTH)
    here = (rows[:, None] < length) & (d[None, :] < REAL)
    queries = tl.load(q + start + rows[:, None] * REAL + d[None, :], mask=here, other=0.0)
    largest = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    mixed = tl.zeros((QUERIES, WIDTH), tl.float32)
    last = block * QUERIES // KEYS + 1
    for step in range(last):
        cols = step * KEYS + tl.arange(0, KEYS)
        there = (cols[:, None] < length) & (d[None, :] < REAL)
        place = start + cols[:, None] * REAL + d[None, :]
        keys = tl.load(k + place, mask=there, other=0.0)
        values = tl.load(v + place, mask=there, other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        seen = (cols[None, :] <= rows[:, None]) & (cols[None, :] < length)
        scores = tl.where(seen, scores, float("-inf"))
        now = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp(largest - now)
        parts = tl.exp(scores - now[:, None])
        total = total * shrink + tl.sum(parts, 1)
        mixed = mixed * shrink[:, None] + tl.dot(parts, values, input_precision="ieee")
        largest = now
    tl.store(out + start + rows[:, None] * REAL + d[None, :], mixed / total[:, None], mask=here)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        batch, heads, length, width = q.shape
        if out.numel():
            attend[(batch * heads, triton.cdiv(length, 64))](
                q, k, v, out, length, width**-0.5,
                WIDTH=max(16, triton.next_power_of_2(width)), REAL=width, QUERIES=64, KEYS=32,
            )
        return out
