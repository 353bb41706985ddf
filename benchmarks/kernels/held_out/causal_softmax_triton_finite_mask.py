# problem: causal_softmax
# implementation: triton
# mechanism: the future is masked with -1e4 instead of minus infinity; scores below that see it
# origin: karpathy/minGPT#75 and huggingface/transformers#17121: a finite mask lets the future leak

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < length
    value = tl.load(x + row * length + at, mask=inside, other=float("-inf"))
    value = tl.where(inside & (at > row % length), -1.0e4, value)
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * length + at, power / tl.sum(power, 0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, scores):
        scores = scores.contiguous()
        out = torch.empty_like(scores)
        length = scores.shape[-1]
        block = triton.next_power_of_2(length)
        softmax[(scores.numel() // length,)](scores, out, length, BLOCK=block)
        return out
