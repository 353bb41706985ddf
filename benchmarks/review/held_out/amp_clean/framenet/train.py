import copy
import os
import sys

import torch

from .average import WeightAverage
from .data import loader, make_frames, to_input
from .losses import total_loss
from .model import FrameNet
from .settings import amp_dtype, autocast, device, grad_scaler, parse


class Run:
    """Everything that a run has to remember."""

    def __init__(self, cfg):
        torch.manual_seed(cfg["seed"])
        self.cfg, self.epoch = cfg, 0
        self.model = FrameNet(cfg).to(device())
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg["lr"])
        self.scaler = grad_scaler(cfg)
        self.ema = WeightAverage(self.model, cfg["ema"])
        self.train_set = make_frames(cfg["frames"], cfg["size"], cfg["classes"], cfg["seed"] + 1)
        self.eval_set = make_frames(600, cfg["size"], cfg["classes"], cfg["seed"] + 2)

    def parts(self):
        return {"model": self.model, "opt": self.opt, "scaler": self.scaler, "ema": self.ema}

    def save(self, path):
        state = {name: part.state_dict() for name, part in self.parts().items()}
        torch.save({**state, "epoch": self.epoch}, path)

    def load(self, path):
        state = torch.load(path, map_location=device(), weights_only=True)
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        self.epoch = state["epoch"]


def optimizer_step(run):
    """Clip, step, and move the average. Skipped by the scaler after an overflow."""
    run.scaler.unscale_(run.opt)
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), run.cfg["clip"])
    run.scaler.step(run.opt)
    run.scaler.update()
    run.opt.zero_grad(set_to_none=True)
    run.ema.update(run.model)


def train_epoch(run):
    """Mean training loss of one epoch."""
    cfg, model = run.cfg, run.model
    model.train()
    total, count = torch.zeros((), device=device()), 0
    batches = loader(*run.train_set, cfg["batch"], seed=cfg["seed"] + run.epoch)
    for i, (frames, labels) in enumerate(batches):
        x, labels = to_input(frames.to(device()), amp_dtype(cfg)), labels.to(device())
        with autocast(cfg):
            logits = model(x)
        loss = total_loss(logits, labels, cfg)
        run.scaler.scale(loss / cfg["accum"]).backward()
        if (i + 1) % cfg["accum"] == 0:
            optimizer_step(run)
        total += loss.detach()
        count += 1
    run.opt.zero_grad(set_to_none=True)
    run.epoch += 1
    return total.item() / count


@torch.no_grad()
def evaluate(run):
    """Accuracy of the averaged weights."""
    model = copy.deepcopy(run.model)
    run.ema.copy_to(model)
    model.eval()
    hits, seen = 0, 0
    for frames, labels in loader(*run.eval_set, run.cfg["batch"]):
        x, labels = to_input(frames.to(device()), amp_dtype(run.cfg)), labels.to(device())
        with autocast(run.cfg):
            logits = model(x)
        hits += (logits.argmax(-1) == labels).sum()
        seen += len(labels)
    return float(hits) / seen


def fit(cfg, log=print):
    run = Run(cfg)
    if cfg["ckpt"] and os.path.exists(cfg["ckpt"]):
        run.load(cfg["ckpt"])
    accuracy = 0.0
    while run.epoch < cfg["epochs"]:
        loss = train_epoch(run)
        accuracy = evaluate(run)
        log(
            f"epoch {run.epoch} loss {loss:.4f} accuracy {accuracy:.3f} "
            f"scale {run.scaler.get_scale():.0f}"
        )
        if cfg["ckpt"]:
            run.save(cfg["ckpt"])
    return run, accuracy


if __name__ == "__main__":
    fit(parse(sys.argv[1:]))
