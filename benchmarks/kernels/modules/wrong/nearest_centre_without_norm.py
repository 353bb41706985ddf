# problem: modules/problems/nearest_centre.py
# implementation: torch
# mechanism: takes the largest product and forgets the length of the centres
# origin: mechanism: takes the largest product and forgets the length of the centres

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, centres):
        return (x @ centres.T).argmax(dim=1)
