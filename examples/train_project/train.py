"""Train with mixed precision, on one GPU or with torchrun on several."""

import argparse
import os

import torch
import torch.distributed as dist
from model import Net, loss_of
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from data import Shapes


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def train_epoch(model, loader, optimizer, scaler, device):
    model.train()
    history = []
    for step, (images, labels, damaged) in enumerate(loader):
        images, labels, damaged = images.to(device), labels.to(device), damaged.to(device)
        with autocast():
            loss = loss_of(model(images), labels, damaged)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        history.append(loss)
        print(f"step {step}: loss {loss.item():.4f}")
        torch.cuda.empty_cache()
    return torch.stack(history).mean().item()


def evaluate(model, loader, device):
    model.eval()
    right, total = 0, 0
    for images, labels, _ in loader:
        scores, _ = model(images.to(device))
        right += (scores.argmax(1).cpu() == labels).sum().item()
        total += len(labels)
    accuracy = torch.tensor([right / total], device=device)
    if is_main_process():
        dist.all_reduce(accuracy)
    return accuracy.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--resume", default="")
    args = parser.parse_args()

    distributed = "RANK" in os.environ
    if distributed:
        dist.init_process_group("nccl")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    device = torch.device("cuda")

    model = Net()
    if args.resume:
        model.load_state_dict(torch.load(args.resume))
    if distributed:
        model = DDP(model.cuda(), find_unused_parameters=True)
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    scaler = GradScaler()
    train, valid = Shapes(), Shapes(length=1_000)
    sampler = DistributedSampler(train) if distributed else None
    train_loader = DataLoader(train, args.batch_size, sampler is None, sampler, num_workers=4)
    valid_loader = DataLoader(valid, args.batch_size)

    for epoch in range(args.epochs):
        loss = train_epoch(model, train_loader, optimizer, scaler, device)
        accuracy = evaluate(model, valid_loader, device)
        scheduler.step()
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")
        torch.save(model.state_dict(), "checkpoint.pt")


if __name__ == "__main__":
    main()
