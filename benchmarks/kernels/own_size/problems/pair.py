import torch


class Model(torch.nn.Module):
    """Two outputs."""

    def forward(self, x):
        return (x * 2, x.exp())


def get_inputs():
    return [torch.randn(1100, 2003)]


def get_init_inputs():
    return []
