"""The network."""

import torch.nn as nn


class Network(nn.Module):
    """Three layers; `stages` gives them as parts of a pipeline."""

    def __init__(self, width=32, dropout=0.1):
        super().__init__()
        self.first = nn.Linear(8, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)
        self.act = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.dropout(self.act(self.first(x)))
        x = self.dropout(self.act(self.second(x)))
        return self.last(x).squeeze(-1)

    def stages(self):
        return [
            nn.Sequential(self.first, self.act, self.second),
            nn.Sequential(self.act, self.last, nn.Flatten(0)),
        ]
