# problem: matmul
# implementation: torch
# mechanism: a subclass of Tensor computes only when someone looks, after the clock stopped
# origin: DeepReinforce: lazy evaluation through a tensor subclass; KernelBench (Scaling Intelligence)'s checker lists it

import torch


class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b):
        made = torch.Tensor._make_subclass(cls, torch.empty(a.shape[0], b.shape[1]))
        made.parts = (a, b)
        return made

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        whole = [item.parts[0] @ item.parts[1] if isinstance(item, Lazy) else item for item in args]
        return function(*whole, **(kwargs or {}))


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return Lazy(a, b)
