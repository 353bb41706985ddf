import argparse
import logging
import os
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from . import checkpoint
from .data import ShardedBatches, make_dataset
from .layers import Net, copy_replicated
from .mesh import Mesh
from .reducer import Reducer, clip_gradients

logger = logging.getLogger("shardtrain")


@dataclass
class Config:
    features: int = 16
    classes: int = 5
    dim: int = 32
    hidden: int = 64
    blocks: int = 2
    train_size: int = 1024
    eval_size: int = 203
    batch_size: int = 32
    accumulate: int = 2
    epochs: int = 3
    lr: float = 3e-3
    max_norm: float = 1.0
    seed: int = 0
    tp: int = 1
    log_every: int = 8
    max_seconds: float = 600.0
    stop_file: str = ""
    out: str = ""


class Trainer:
    def __init__(self, cfg, mesh):
        self.cfg, self.mesh = cfg, mesh
        # the ranks of a tensor-parallel group draw different shards
        torch.manual_seed(cfg.seed + mesh.rank)
        self.model = Net(cfg, mesh).to(mesh.device)
        copy_replicated(self.model, mesh)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.reducer = Reducer(self.model, mesh)
        self.start_epoch = 0
        if cfg.out:
            self.start_epoch = checkpoint.resume(cfg.out, self.model, self.optimizer, mesh)
        train = make_dataset(cfg.train_size, cfg.features, cfg.classes, seed=cfg.seed + 1)
        self.train_data = ShardedBatches(train, cfg.batch_size, mesh.dp_rank, mesh.dp, cfg.seed)
        self.eval_data = make_dataset(cfg.eval_size, cfg.features, cfg.classes, seed=cfg.seed + 2)
        self.started = time.monotonic()

    def step(self, micro_batches):
        """One optimizer step over several micro-batches; returns the local mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.mesh.device)
        for i, batch in enumerate(micro_batches):
            x, y, aux = (t.to(self.mesh.device) for t in batch)
            self.reducer.begin(sync=True)
            loss = self.model.loss(x, y, aux) / len(micro_batches)
            loss.backward()
            self.reducer.finish()
            total += loss.detach()
        clip_gradients(self.model, self.mesh, self.cfg.max_norm)
        self.optimizer.step()
        return total

    def stop_requested(self):
        return self.mesh.any_rank(bool(self.cfg.stop_file) and os.path.exists(self.cfg.stop_file))

    def out_of_time(self):
        return time.monotonic() - self.started > self.cfg.max_seconds

    def train_epoch(self, epoch):
        """False when the run has to end."""
        pending, step = [], 0
        for batch in self.train_data.epoch(epoch):
            pending.append(batch)
            if len(pending) < self.cfg.accumulate:
                continue
            loss = self.mesh.sum_over_replicas(self.step(pending)).item() / self.mesh.dp
            pending, step = [], step + 1
            if step % self.cfg.log_every == 0:
                self.log("epoch %d step %d loss %.4f", epoch, step, loss)
                if self.stop_requested() or self.out_of_time():
                    return False
        return True

    @torch.no_grad()
    def evaluate(self):
        """Accuracy and loss over the whole evaluation set."""
        self.model.eval()
        x, y, _ = (t[self.mesh.dp_rank :: self.mesh.dp].to(self.mesh.device) for t in self.eval_data)
        sums = torch.zeros(3, device=self.mesh.device)
        for xb, yb in zip(x.split(64), y.split(64)):
            logits = self.model.head(self.model(xb))
            sums[0] += F.cross_entropy(logits, yb, reduction="sum")
            sums[1] += (logits.argmax(-1) == yb).sum()
            sums[2] += len(xb)
        self.model.train()
        means = self.mesh.sum_over_replicas(sums[:2] / sums[2]) / self.mesh.dp
        return means[0].item(), means[1].item()

    def fit(self):
        loss = accuracy = float("nan")
        for epoch in range(self.start_epoch, self.cfg.epochs):
            go_on = self.train_epoch(epoch)
            loss, accuracy = self.evaluate()
            self.log("epoch %d eval loss %.4f accuracy %.3f", epoch, loss, accuracy)
            if self.cfg.out:
                checkpoint.save(self.cfg.out, self.model, self.optimizer, epoch + 1, self.mesh)
            if not go_on:
                break
        return loss, accuracy

    def log(self, *args):
        if self.mesh.is_main:
            logger.info(*args)


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser()
    for name, default in vars(Config()).items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    cfg = Config(**vars(parser.parse_args()))
    mesh = Mesh.create(cfg.tp)
    Trainer(cfg, mesh).fit()
    mesh.close()


if __name__ == "__main__":
    main()
