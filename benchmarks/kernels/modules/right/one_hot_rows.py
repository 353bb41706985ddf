# problem: modules/problems/one_hot_rows.py
# implementation: torch
# mechanism: looks the row up at the place of the one

import torch


class ModelNew(torch.nn.Module):
    def forward(self, chosen, table):
        return table.index_select(0, chosen.argmax(dim=1))
