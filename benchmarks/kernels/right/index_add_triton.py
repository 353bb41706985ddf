# problem: index_add
# implementation: triton
# mechanism: atomic additions, so that programs may meet in any order

import torch
import triton
import triton.language as tl


@triton.jit
def copy(base_pointer, out_pointer, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    tl.store(out_pointer + offsets, tl.load(base_pointer + offsets, mask=inside), mask=inside)


@triton.jit
def add(index_pointer, rows_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    target = tl.load(index_pointer + row)
    values = tl.load(rows_pointer + row * width + columns, mask=inside, other=0.0)
    tl.atomic_add(out_pointer + target * width + columns, values, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        base, index, rows = base.contiguous(), index.contiguous(), rows.contiguous()
        out = torch.empty_like(base)
        size, width = base.numel(), base.shape[1]
        if size:
            copy[(triton.cdiv(size, 256),)](base, out, size, BLOCK=256)
            if index.numel():
                add[(index.numel(),)](
                    index, rows, out, width, BLOCK=triton.next_power_of_2(width)
                )
        return out
