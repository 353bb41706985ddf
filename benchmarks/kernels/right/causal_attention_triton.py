# problem: causal_attention
# implementation: triton
# mechanism: one program per query and head, the scores of a row in one block

import torch
import triton
import triton.language as tl


@triton.jit
def attend(q_pointer, k_pointer, v_pointer, out_pointer, length, width, scale, WIDTH: tl.constexpr, LENGTH: tl.constexpr):
    query, head = tl.program_id(0), tl.program_id(1)
    base = head * length * width
    lanes = tl.arange(0, WIDTH)
    inside = lanes < width
    keys = tl.arange(0, LENGTH)
    seen = keys <= query
    q = tl.load(q_pointer + base + query * width + lanes, mask=inside, other=0.0)
    place = base + keys[:, None] * width + lanes[None, :]
    both = seen[:, None] & inside[None, :]
    k = tl.load(k_pointer + place, mask=both, other=0.0)
    scores = tl.where(seen, tl.sum(k * q[None, :], axis=1) * scale, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, axis=0))
    weights = weights / tl.sum(weights, axis=0)
    v = tl.load(v_pointer + place, mask=both, other=0.0)
    mixed = tl.sum(v * weights[:, None], axis=0)
    tl.store(out_pointer + base + query * width + lanes, mixed, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        batch, heads, length, width = q.shape
        if out.numel():
            attend[(length, batch * heads)](
                q, k, v, out, length, width, width**-0.5,
                WIDTH=triton.next_power_of_2(width), LENGTH=triton.next_power_of_2(length),
            )
        return out
