# problem: conv2d
# implementation: torch
# mechanism: unfolded windows and one product

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        batch, channels, rows, columns = x.shape
        out_rows, out_columns = (rows - 1) // 2 + 1, (columns - 1) // 2 + 1
        windows = torch.nn.functional.unfold(x, 3, padding=1, stride=2)
        made = weight.reshape(weight.shape[0], -1) @ windows
        return made.reshape(batch, weight.shape[0], out_rows, out_columns)
