# problem: grouped_query_attention
# implementation: triton
# mechanism: a query head's shared head is head // (number of shared heads) instead of
#   head // (queries per shared head); the two agree when both numbers are equal
# origin: PSAL-POSTECH/ONNXim pull 34, HazyResearch/HipKittens pull 22

import math

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, heads, shared_heads, queries, keys, depth, depth_out,
    KEYS: tl.constexpr, DEPTH: tl.constexpr, DEPTH_OUT: tl.constexpr,
):
    query = tl.program_id(0)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    shared = tl.minimum(head // shared_heads, shared_heads - 1)
    key = tl.arange(0, KEYS)
    d = tl.arange(0, DEPTH)
    e = tl.arange(0, DEPTH_OUT)
    q_row = (batch * heads + head) * queries + query
    k_row = (batch * shared_heads + shared) * keys
    q = tl.load(q_ptr + q_row * depth + d, mask=d < depth, other=0.0)
    inside = (key[:, None] < keys) & (d[None, :] < depth)
    k = tl.load(k_ptr + (k_row + key[:, None]) * depth + d[None, :], mask=inside, other=0.0)
    scores = tl.sum(k * q[None, :], axis=1) * scale
    scores = tl.where(key < keys, scores, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=0))
    weights = weights / tl.sum(weights, axis=0)
    inside = (key[:, None] < keys) & (e[None, :] < depth_out)
    v = tl.load(v_ptr + (k_row + key[:, None]) * depth_out + e[None, :], mask=inside, other=0.0)
    answer = tl.sum(v * weights[:, None], axis=0)
    tl.store(out_ptr + q_row * depth_out + e, answer, mask=e < depth_out)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        batch, heads, queries, depth = q.shape
        out = torch.empty(batch, heads, queries, v.shape[-1], dtype=q.dtype)
        if out.numel():
            attend[(queries, heads, batch)](
                q, k, v, out, 1.0 / math.sqrt(depth),
                heads, k.shape[1], queries, k.shape[2], depth, v.shape[-1],
                KEYS=triton.next_power_of_2(k.shape[2]),
                DEPTH=triton.next_power_of_2(depth),
                DEPTH_OUT=triton.next_power_of_2(v.shape[-1]),
            )
        return out
