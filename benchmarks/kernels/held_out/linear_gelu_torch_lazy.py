# problem: linear_gelu
# implementation: torch
# mechanism: returns at once a tensor subclass that computes when somebody looks at it
# origin: wafer.ai, A Field Guide to Reward Hacking in AI Kernel Generation (2026): lazy evaluation through a tensor subclass

import torch
import torch.nn.functional as F


class Later(torch.Tensor):
    @staticmethod
    def __new__(cls, shape, dtype, work):
        made = torch.Tensor._make_subclass(cls, torch.empty(shape, dtype=dtype))
        made.work = work
        return made

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def settle(value):
            if isinstance(value, Later):
                with torch._C.DisableTorchFunctionSubclass():
                    plain = value.as_subclass(torch.Tensor)
                    work = value.__dict__.pop("work", None)
                    if work is not None:
                        plain.copy_(work())
                    return plain
            if isinstance(value, (tuple, list)):
                return type(value)(settle(item) for item in value)
            return value

        with torch._C.DisableTorchFunctionSubclass():
            return function(*settle(args), **{k: settle(v) for k, v in (kwargs or {}).items()})


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        weight, bias = self.weight.detach(), self.bias.detach()

        def work():
            return F.gelu(F.linear(x, weight, bias), approximate="tanh")

        return Later((x.shape[0], weight.shape[0]), x.dtype, work)
