# problem: softmax
# implementation: triton
# mechanism: tiles of four rows, a running maximum and sum over blocks of columns, then a second pass

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    largest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, width, BLOCK):
        at = row[:, None] * width + (start + column)[None, :]
        inside = (row < rows)[:, None] & (start + column < width)[None, :]
        values = tl.load(x_ptr + at, mask=inside, other=float("-inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(values, axis=1))
        shift = tl.where(new == float("-inf"), 0.0, new)
        grown = tl.sum(tl.exp(values - shift[:, None]), axis=1)
        total = total * tl.exp(largest - shift) + grown
        largest = new
    shift = tl.where(largest == float("-inf"), 0.0, largest)
    for start in range(0, width, BLOCK):
        at = row[:, None] * width + (start + column)[None, :]
        inside = (row < rows)[:, None] & (start + column < width)[None, :]
        values = tl.load(x_ptr + at, mask=inside, other=float("-inf")).to(tl.float32)
        tl.store(out_ptr + at, tl.exp(values - shift[:, None]) / total[:, None], mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            rows = x.numel() // width
            softmax[(triton.cdiv(rows, 4),)](x, out, rows, width, ROWS=4, BLOCK=32)
        return out
