"""The right twin of `faulty.py`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(128256, 256)
        self.head = nn.Linear(256, 128256, bias=False)

    def forward(self, tokens):
        return self.head(self.embed(tokens))


model = LanguageModel().cuda()
optimizer = torch.optim.AdamW(model.parameters())
tokens = torch.zeros(2, 4096, dtype=torch.int64).cuda()
loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
loss.backward()
optimizer.step()
