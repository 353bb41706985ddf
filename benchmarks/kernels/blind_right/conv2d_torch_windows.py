# problem: conv2d
# implementation: torch
# mechanism: the padded image is seen as overlapping windows through strides and contracted with the filters

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        batch, channels, height, width = x.shape
        padded = x.new_zeros((batch, channels, height + 2, width + 2))
        padded[:, :, 1:-1, 1:-1] = x
        image, plane, row, column = padded.stride()
        windows = padded.as_strided(
            (batch, channels, (height + 1) // 2, (width + 1) // 2, 3, 3),
            (image, plane, 2 * row, 2 * column, row, column),
        )
        return torch.einsum("bcyxij,ocij->boyx", windows, weight)
