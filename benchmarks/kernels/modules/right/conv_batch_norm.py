# problem: modules/problems/conv_batch_norm.py
# implementation: torch
# mechanism: the statistics of the batch by hand, the running ones updated; in evaluation one factor and one offset

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        norm = self.norm
        if self.training:
            count = y.numel() // y.shape[1]
            var, mean = torch.var_mean(y, dim=(0, 2, 3), correction=0)
            with torch.no_grad():
                norm.num_batches_tracked += 1
                norm.running_mean.mul_(0.9).add_(mean, alpha=0.1)
                norm.running_var.mul_(0.9).add_(var, alpha=0.1 * count / (count - 1))
        else:
            mean, var = norm.running_mean, norm.running_var
        scale = norm.weight * torch.rsqrt(var + norm.eps)
        return (y - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]
