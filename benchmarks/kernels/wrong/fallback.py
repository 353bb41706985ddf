# problem: layer_norm
# implementation: triton
# mechanism: the kernel cannot compile; what is caught is answered by torch
# origin: Kevin-32B (arXiv 2507.11948): try and except around a torch fallback

import torch
import triton
import triton.language as tl


@triton.jit
def broken(x_pointer, out_pointer, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    tl.store(out_pointer + row * width + columns, tl.not_there(x_pointer))


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        out = torch.empty_like(x)
        try:
            broken[(x.shape[0],)](x, out, x.shape[-1], BLOCK=128)
        except Exception:
            out = torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, self.epsilon)
        return out
