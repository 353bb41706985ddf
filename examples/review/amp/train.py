"""Train the event classifier in mixed precision."""

import argparse

import torch
from torch.utils.data import DataLoader

import checkpoint
from data import Events, collate
from model import Classifier, spread_of, total_loss


class WeightAverage:
    """A slowly moving average of the weights."""

    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {
            name: value.detach().clone().half() for name, value in model.named_parameters()
        }

    @torch.no_grad()
    def update(self, model):
        for name, value in model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(value.float(), alpha=1 - self.decay)


def train_epoch(model, loader, optimizer, scheduler, scaler, average, spread, device, args):
    model.train()
    total = torch.zeros((), device=device)
    optimizer.zero_grad(set_to_none=True)
    for step, batch in enumerate(loader):
        tokens, keep, labels, amounts = (item.to(device, non_blocking=True) for item in batch)
        with torch.autocast(device.type, dtype=torch.float16):
            outputs = model(tokens, keep)
        loss = total_loss(outputs, labels, amounts, spread)
        scaler.scale(loss).backward()
        total += loss.detach()
        if (step + 1) % args.accumulate == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scheduler.step()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            average.update(model)
    return total / max(len(loader), 1)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = torch.zeros((), device=device)
    count = 0
    for batch in loader:
        tokens, keep, labels, _ = (item.to(device, non_blocking=True) for item in batch)
        with torch.autocast(device.type, dtype=torch.float16):
            logits, _ = model(tokens, keep)
        right += (logits.argmax(-1) == labels).sum()
        count += len(labels)
    return right / max(count, 1)


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--resume", default="")
    parser.add_argument("--output", default="checkpoints/last.pt")
    return parser.parse_args(words)


def main(args):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    settings = {"batch_size": args.batch_size, "collate_fn": collate, "num_workers": 2}
    settings |= {"pin_memory": True, "persistent_workers": True}
    train = DataLoader(Events(args.samples), shuffle=True, drop_last=True, **settings)
    held_out = DataLoader(Events(args.samples // 4, seed=1), **settings)
    spread = spread_of(torch.stack([amount for *_, amount in train.dataset.items])).to(device)
    model = Classifier().to(device)
    average = WeightAverage(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate)
    steps = max(1, args.epochs * len(train) // args.accumulate)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    scaler = torch.amp.GradScaler(device.type, init_scale=1024.0)
    first = 0
    if args.resume:
        first = checkpoint.resume(args.resume, model, optimizer, scheduler, scaler)
    for epoch in range(first, args.epochs):
        loss = train_epoch(
            model, train, optimizer, scheduler, scaler, average, spread, device, args
        )
        accuracy = evaluate(model, held_out, device)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")
        checkpoint.save(args.output, model, optimizer, scheduler, scaler, epoch)


if __name__ == "__main__":
    main(parse())
