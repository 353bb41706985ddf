import torch
import torch.nn as nn


def train(model, train_dl, opt):
    mse = nn.MSELoss()
    for xb, yb in train_dl:
        pred = model(xb)
        loss = nn.L1Loss(pred, yb)  # FAULT: loss-class-given-tensors
        reg = mse(pred, yb)
        opt.zero_grad()
        (loss + 0.1 * reg).backward()
        opt.step()


def weighted(counts):
    weights = 1.0 / torch.tensor(counts, dtype=torch.float32)
    return nn.CrossEntropyLoss(weights)
