import argparse
import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


class Trainer:
    def __init__(self, model, loader, args):
        self.model = model.cuda()
        self.loader = loader
        self.args = args
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr, weight_decay=0.05)
        self.scaler = GradScaler("cuda", enabled=args.amp)

    def train_one_epoch(self, epoch):
        self.model.train()
        for step, (images, target) in enumerate(self.loader):
            images = images.cuda(non_blocking=True)
            target = target.cuda(non_blocking=True)
            with autocast("cuda", enabled=self.args.amp):
                output = self.model(images)
                loss = self.criterion(output, target)
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(loss).backward()
            if self.args.clip_grad is not None:
                self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip_grad)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            if step % self.args.log_interval == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")


def main(model, loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--clip-grad", type=float, default=None)
    parser.add_argument("--log-interval", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    trainer = Trainer(model, loader, args)
    for epoch in range(args.epochs):
        trainer.train_one_epoch(epoch)
