"""Train a large network, then a small one that learns from it; the best small one is kept."""

import argparse
import copy

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from data import Pictures, make_pictures
from losses import hint_loss, soft_loss
from model import Bridge, Network


def train_teacher(teacher, loader, epochs, rate):
    teacher.train()
    optimizer = torch.optim.SGD(teacher.parameters(), lr=rate, momentum=0.9)
    for _ in range(epochs):
        for pictures, kinds in loader:
            loss = F.cross_entropy(teacher(pictures)[0], kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def distill_epoch(student, bridge, teacher, loader, optimizer, scheduler, temperature):
    student.train()
    teacher.eval()
    for pictures, kinds in loader:
        with torch.no_grad():
            theirs, features = teacher(pictures)
        ours, own = student(pictures)
        loss = F.cross_entropy(ours, kinds)
        loss = loss + soft_loss(ours, theirs, temperature)
        loss = loss + 0.1 * hint_loss(bridge(own), features)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()


@torch.no_grad()
def evaluate(model, loader):
    """The mean loss and the share of right answers."""
    model.eval()
    loss, right, count = 0.0, 0, 0
    for pictures, kinds in loader:
        outputs, _ = model(pictures)
        loss += F.cross_entropy(outputs, kinds, reduction="sum").item()
        right += (outputs.argmax(1) == kinds).sum().item()
        count += len(kinds)
    return loss / count, right / count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--pictures", type=int, default=480)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--temperature", type=float, default=4.0)
    parser.add_argument("--output", default="student.pt")
    args = parser.parse_args()
    torch.manual_seed(0)
    pictures, kinds = make_pictures(args.pictures)
    split = args.pictures * 3 // 4 + 8
    mean = pictures[:split].mean()
    train = DataLoader(
        Pictures(pictures[:split], kinds[:split], mean, shift=True), args.batch_size, shuffle=True, drop_last=True
    )
    held_out = DataLoader(Pictures(pictures[split:], kinds[split:], mean), args.batch_size)
    teacher, student, bridge = Network(24, 3, dropout=0.1), Network(8, 2), Bridge(8, 24)
    train_teacher(teacher, train, args.epochs, args.rate)
    parameters = [*student.parameters(), *bridge.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=args.rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.rate, total_steps=args.epochs * len(train) + 1)
    best, lowest = copy.deepcopy(student.state_dict()), float("inf")
    for epoch in range(args.epochs):
        distill_epoch(student, bridge, teacher, train, optimizer, scheduler, args.temperature)
        loss, right = evaluate(student, held_out)
        print(f"epoch {epoch}: held-out loss {loss:.4f}, right {right:.1%}")
        if loss < lowest:
            best, lowest = copy.deepcopy(student.state_dict()), loss
    torch.save({"student": best, "loss": lowest}, args.output)


if __name__ == "__main__":
    main()
