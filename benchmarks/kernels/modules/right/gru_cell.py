# problem: modules/problems/gru_cell.py
# implementation: torch
# mechanism: the gates written out, the new state by an interpolation

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.cell = torch.nn.GRUCell(inputs, hidden)

    def forward(self, x, h):
        cell = self.cell
        a = (x @ cell.weight_ih.t() + cell.bias_ih).chunk(3, 1)
        b = (h @ cell.weight_hh.t() + cell.bias_hh).chunk(3, 1)
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        n = torch.tanh(a[2] + r * b[2])
        return torch.lerp(n, h, z)
