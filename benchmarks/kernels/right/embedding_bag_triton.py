# problem: embedding_bag
# implementation: triton
# mechanism: one program per bag adds up the rows that it names

import torch
import triton
import triton.language as tl


@triton.jit
def bag_kernel(table_pointer, bags_pointer, out_pointer, width, count, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for place in range(count):
        row = tl.load(bags_pointer + bag * count + place)
        total += tl.load(table_pointer + row * width + columns, mask=inside, other=0.0)
    tl.store(out_pointer + bag * width + columns, total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, table, bags):
        table, bags = table.contiguous(), bags.contiguous()
        width = table.shape[1]
        out = torch.empty((bags.shape[0], width), dtype=table.dtype, device=table.device)
        if out.numel():
            bag_kernel[(bags.shape[0],)](
                table, bags, out, width, bags.shape[1], BLOCK=triton.next_power_of_2(width)
            )
        return out
