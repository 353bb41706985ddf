import torch
import torch.nn.functional as F


def adjust_lr(base, epoch):
    return base * (0.1 ** (epoch // 30))


def train_epoch(model, loader, lr):
    for x, y in loader:
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)  # FAULT: optimizer-made-in-step-loop
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


def main(folds, make_model, loader_of):
    # a new model and optimizer for each fold is right
    for fold in folds:
        model = make_model()
        opt = torch.optim.Adam(model.parameters())
        for x, y in loader_of(fold):
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
    for epoch in range(90):
        train_epoch(model, loader_of(0), adjust_lr(0.1, epoch))
