# problem: causal_softmax
# implementation: triton
# mechanism: what is ahead is minus infinity before the row is reduced

import torch
import triton
import triton.language as tl


@triton.jit
def causal_softmax_kernel(x_pointer, out_pointer, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    position = row % length
    columns = tl.arange(0, BLOCK)
    inside = columns < length
    x = tl.load(x_pointer + row * length + columns, mask=columns <= position, other=float("-inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_pointer + row * length + columns, weights / tl.sum(weights, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, scores):
        scores = scores.contiguous()
        out = torch.empty_like(scores)
        if scores.numel():
            length = scores.shape[-1]
            rows = scores.numel() // length
            causal_softmax_kernel[(rows,)](
                scores, out, length, BLOCK=triton.next_power_of_2(length)
            )
        return out
