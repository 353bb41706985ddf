import torch
from torch import nn


def train_one_epoch(model, criterion, optimizer, data_loader, device, scaler, print_freq=100):
    model.train()
    for i, (image, target) in enumerate(data_loader):
        image = image.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(image)
            loss = criterion(output, target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if i % print_freq == 0:
            print(i, loss.item())


@torch.no_grad()
def evaluate(model, data_loader, device):
    model.eval()
    hits = torch.zeros((), device=device)
    n = 0
    for image, target in data_loader:
        image = image.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(image)
        hits += (output.float().argmax(1) == target).sum()
        n += target.numel()
    return hits.item() / n


def main(model, train_loader, val_loader):
    device = torch.device("cuda")
    model.to(device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(10):
        train_one_epoch(model, criterion, optimizer, train_loader, device, scaler)
        print(epoch, evaluate(model, val_loader, device))
