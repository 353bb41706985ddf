# problem: modules/problems/conv_batch_norm.py
# implementation: torch
# mechanism: uses the statistics of the batch in evaluation, too
# origin: mechanism: uses the statistics of the batch in evaluation, too

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        return F.batch_norm(y, self.norm.running_mean, self.norm.running_var, self.norm.weight,
                            self.norm.bias, training=True)
