"""More samples of autograd-function-without-custom-fwd."""

GOOD = (
    """\
import torch
from torch.amp import custom_bwd, custom_fwd

class Product(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad

with torch.autocast("cuda"):
    Product.apply(x, w)
""",
    """\
import torch

class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad

with torch.autocast("cuda"):
    ReverseGradient.apply(x)
""",
    """\
import torch
import torch.distributed as dist

class AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad

with torch.autocast("cuda"):
    AllReduce.apply(x)
""",
    """\
import torch

class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        if torch.is_autocast_enabled():
            x, w = x.half(), w.half()
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad

with torch.autocast("cuda"):
    Product.apply(x, w)
""",
    """\
import torch

class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return x @ w
""",
)
