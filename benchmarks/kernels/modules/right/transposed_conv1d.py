# problem: modules/problems/transposed_conv1d.py
# implementation: torch
# mechanism: zeros between the inputs, then a plain convolution with turned weights

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        batch, channels, n = x.shape
        k = weight.shape[2]
        wide = x.new_zeros(batch, channels, 2 * n - 1)
        wide[:, :, ::2] = x
        return F.conv1d(F.pad(wide, (k - 1, k - 1)), weight.flip(2).transpose(0, 1))
