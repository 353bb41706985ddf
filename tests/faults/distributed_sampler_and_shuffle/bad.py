import torch
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler


def loaders(train_ds, val_ds, args):
    sampler = DistributedSampler(train_ds) if args.distributed else RandomSampler(train_ds)
    train = DataLoader(train_ds, batch_size=args.bs, sampler=sampler, shuffle=True)  # FAULT: sampler-with-shuffle
    val = DataLoader(val_ds, batch_size=args.bs, shuffle=False)
    extra = DataLoader(val_ds, batch_size=args.bs, shuffle=args.shuffle, sampler=None)
    return train, val, extra


def run(model, opt, args, train_ds, val_ds):
    train, val, _ = loaders(train_ds, val_ds, args)
    for epoch in range(args.epochs):
        if args.distributed:
            train.sampler.set_epoch(epoch)
        for x, y in train:
            opt.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            opt.step()
    return val
