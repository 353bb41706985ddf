import torch


class Model(torch.nn.Module):
    """ReLU."""

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(1100, 2003)]


def get_init_inputs():
    return []
