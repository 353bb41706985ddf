"""A forecaster: convolutions over the past, and one output for each hour to come."""

import torch
from torch import nn


class Forecaster(nn.Module):
    """Sees the past loads and where they were reported."""

    def __init__(self, ahead=12, width=32, dropout=0.1):
        super().__init__()
        self.past = nn.Sequential(
            nn.Conv1d(2, width, 5, padding=2),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Conv1d(width, width, 5, padding=2),
            nn.ReLU(),
        )
        self.ahead = nn.Linear(2 * width, ahead)

    def forward(self, loads, seen):
        states = self.past(torch.stack([loads, seen], dim=1))
        weights = seen.unsqueeze(1)
        mean = (states * weights).sum(-1) / weights.sum(-1).clamp(min=1)
        return self.ahead(torch.cat([mean, states[..., -1]], dim=-1))


class Daily(nn.Module):
    """How much the day as a whole will take: one number for each meter."""

    def __init__(self, ahead=12):
        super().__init__()
        self.total = nn.Linear(ahead, 1)

    def forward(self, hours):
        return self.total(hours).squeeze(-1)
