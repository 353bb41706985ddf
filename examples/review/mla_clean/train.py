"""Train the language model and print a continuation."""

import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from config import Config
from data import Counting, collate
from model import LanguageModel, generate


def loss_of(model, batch, device):
    tokens, keep, targets = (item.to(device, non_blocking=True) for item in batch)
    logits = model(tokens, keep)
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def train_epoch(model, loader, optimizer, device, limit):
    total = torch.zeros((), device=device)
    for batch in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, batch, device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        total += loss.detach()
    return total / max(len(loader), 1)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total = torch.zeros((), device=device)
    for batch in loader:
        total += loss_of(model, batch, device)
    model.train()
    return total / max(len(loader), 1)


def continuation(model, device, count):
    """Decode in bfloat16 with the absorbed form."""
    model.eval()
    model.to(torch.bfloat16)
    model.use_absorbed_form()
    prompt = torch.tensor([[3, 4, 5, 6], [9, 11, 13, 15]], device=device)
    return generate(model, prompt, count)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--generate", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    settings = {"batch_size": args.batch_size, "collate_fn": collate, "num_workers": 2}
    settings |= {"pin_memory": True, "persistent_workers": True}
    train = DataLoader(Counting(args.samples), shuffle=True, **settings)
    held_out = DataLoader(Counting(args.samples // 4, seed=1), **settings)
    model = LanguageModel(Config()).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate)
    model.train()
    for epoch in range(args.epochs):
        loss = train_epoch(model, train, optimizer, device, args.clip)
        print(f"epoch {epoch}: loss {loss:.4f}, held out {evaluate(model, held_out, device):.4f}")
    print(continuation(model, device, args.generate).tolist())


if __name__ == "__main__":
    main()
