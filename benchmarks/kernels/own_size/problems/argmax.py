import torch


class Model(torch.nn.Module):
    """Places of the largest elements."""

    def forward(self, x):
        return x.argmax(dim=-1)


def get_inputs():
    return [torch.randn(1200, 1900)]


def get_init_inputs():
    return []
