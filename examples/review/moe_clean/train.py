"""Train the language model with routed experts."""

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from config import Config
from data import Counting, collate
from model import LanguageModel


def train_epoch(model, loader, optimizer, device, limit):
    model.train()
    total = torch.zeros((), device=device)
    for batch in loader:
        tokens, targets = (item.to(device, non_blocking=True) for item in batch)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, extra = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        (loss + extra).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        total += loss.detach()
    return total / max(len(loader), 1)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total = torch.zeros((), device=device)
    for batch in loader:
        tokens, targets = (item.to(device, non_blocking=True) for item in batch)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, _ = model(tokens)
            total += F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
    return total / max(len(loader), 1)


def save(path, model, optimizer, epoch):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--output", default="checkpoints/experts.pt")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    settings = {"batch_size": args.batch_size, "collate_fn": collate, "num_workers": 2}
    settings |= {"pin_memory": True, "persistent_workers": True}
    train = DataLoader(Counting(args.samples), shuffle=True, **settings)
    held_out = DataLoader(Counting(args.samples // 4, seed=1), **settings)
    model = LanguageModel(Config()).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate)
    for epoch in range(args.epochs):
        loss = train_epoch(model, train, optimizer, device, args.clip)
        print(f"epoch {epoch}: loss {loss:.4f}, held out {evaluate(model, held_out, device):.4f}")
        save(args.output, model, optimizer, epoch)


if __name__ == "__main__":
    main()
