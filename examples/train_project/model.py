"""The network and its losses."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    """Convolution, norm, activation, dropout."""

    def __init__(self, inputs, outputs, dropout=0.1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)
        self.dropout = dropout

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        return F.dropout(x, self.dropout)


class Net(nn.Module):
    """Two heads on one backbone."""

    def __init__(self, classes=2, width=32):
        super().__init__()
        self.blocks = [Block(3, width), Block(width, width * 2)]
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(width * 2, classes)
        self.damaged = nn.Linear(width * 2, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        x = self.pool(x).flatten(1)
        x = x.half()
        logits = self.classify(x)
        return logits, torch.sigmoid(self.damaged(x)).squeeze(1)


def loss_of(outputs, labels, damaged):
    """Class loss plus the auxiliary one."""
    logits, broken = outputs
    scores = F.softmax(logits, dim=-1)
    return F.cross_entropy(scores, labels) + F.binary_cross_entropy(broken, damaged)
