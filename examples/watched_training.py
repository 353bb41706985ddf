"""A training run with a fault in it: from step 400 on, labels belong to other images.

Run it, and read what it says; then: torchstone watch RUN_FOLDER -o watch.html
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

from torchstone import watch_training

torch.manual_seed(0)
torch.set_num_threads(1)
rule = torch.randn(64, 10)
model = nn.Sequential(
    nn.Linear(64, 512), nn.LayerNorm(512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)


@watch_training(warmup_steps=100, alert_window=50, folder=sys.argv[1] if sys.argv[1:] else True)
def train_step(model, batch):
    optimizer.zero_grad()
    images, labels = batch
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


for step in range(430):
    images = torch.randn(512, 64)
    labels = (images @ rule).argmax(1)
    if step >= 400:
        labels = labels.roll(1)
    train_step(model, (images, labels))
