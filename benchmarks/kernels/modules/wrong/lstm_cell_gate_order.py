# problem: modules/problems/lstm_cell.py
# implementation: torch
# mechanism: takes the gates in the order of another framework
# origin: mechanism: takes the gates in the order of another framework

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.cell = torch.nn.LSTMCell(inputs, hidden)

    def forward(self, x, h, c):
        cell = self.cell
        gates = F.linear(x, cell.weight_ih, cell.bias_ih) + F.linear(h, cell.weight_hh, cell.bias_hh)
        i, g, f, o = gates.chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
