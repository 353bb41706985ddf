import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


def get_loaders(train_ds, val_ds, args):
    common = dict(batch_size=args.batch_size, num_workers=args.workers, pin_memory=True)
    val = DataLoader(val_ds, shuffle=False, **common)
    train = DataLoader(train_ds, batch_size=args.batch_size, shuffle=True, num_workers=4)  # FAULT: unpinned-loader
    return train, val


def train(model, train_ds, val_ds, args):
    device = torch.device("cuda")
    model.to(device)
    opt = torch.optim.AdamW(model.parameters())
    train_loader, val_loader = get_loaders(train_ds, val_ds, args)
    for x, y in train_loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return val_loader
