import torch
import torch.nn as nn


def validate(model, loader, criterion):
    model.eval()  # FAULT: eval-left-on
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y).item() * x.size(0)
            n += x.size(0)
    return total / n


def main(model, train_loader, val_loader, epochs=10):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    best = float("inf")
    model.train()
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        val = validate(model, val_loader, criterion)
        if val < best:
            best = val
            torch.save(model.state_dict(), "best.pth")
        print(epoch, val)
