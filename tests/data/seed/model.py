"""A detector head and its training step."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler


class Neck(nn.Module):
    """Joins two feature maps."""

    def __init__(self, width):
        super().__init__()
        self.lateral = nn.Conv2d(width, width, 1)
        self.output = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, low, high):
        high = F.interpolate(high, scale_factor=2.0, mode="nearest")
        return self.output(self.lateral(low) + high)


class Head(nn.Module):
    """Scores and boxes for every place of a feature map."""

    def __init__(self, width, classes):
        super().__init__()
        self.neck = Neck(width)
        self.tower = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(8, width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(8, width),
            nn.ReLU(),
        )
        self.scores = nn.Conv2d(width, classes, 1)
        self.boxes = nn.Conv2d(
            width,
            4,
            1,
        )

    def forward(self, low, high):
        x = self.tower(self.neck(low, high))
        x = x.half()
        return self.scores(x), self.boxes(x)


class Trainer:
    """One step of training."""

    def __init__(self, head, optimizer):
        self.head = head
        self.optimizer = optimizer
        self.scaler = GradScaler()
        self.steps = 0

    def step(self, low, high, targets):
        self.optimizer.zero_grad()
        with torch.autocast("cuda"):
            scores, boxes = self.head(low, high)
            loss = self.loss(torch.sigmoid(scores), boxes, targets)
        self.scaler.scale(loss).backward()
        return loss.detach()

    def loss(self, scores, boxes, targets):
        classes = F.binary_cross_entropy(scores, targets["classes"])
        return classes + F.l1_loss(boxes, targets["boxes"])
