# problem: modules/problems/lstm_cell.py
# implementation: torch
# mechanism: one product of the inputs beside each other

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.cell = torch.nn.LSTMCell(inputs, hidden)

    def forward(self, x, h, c):
        weight = torch.cat([self.cell.weight_ih, self.cell.weight_hh], dim=1)
        gates = torch.cat([x, h], dim=1) @ weight.t() + (self.cell.bias_ih + self.cell.bias_hh)
        i, f, g, o = gates.chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
