from __future__ import annotations

import argparse
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from .config import ModelConfig, TrainConfig
from .data import BOS, IGNORE, batches
from .generate import generate
from .model import LatentLM
from .parallel import average_gradients, init_sequence_parallel, local_slice


def token_loss(logits: torch.Tensor, labels: torch.Tensor, sp=None) -> torch.Tensor:
    """Mean cross entropy per real token, ready for gradient averaging."""
    logits, labels = logits.flatten(0, 1).float(), labels.flatten()
    return F.cross_entropy(logits, labels, ignore_index=IGNORE)


def local_loss(model: LatentLM, batch, device, sp) -> torch.Tensor:
    part = local_slice(batch.ids.shape[1], sp)
    logits = model(batch.ids[:, part].to(device), batch.docs.to(device), sp=sp)
    return token_loss(logits, batch.labels[:, part].to(device), sp)


@torch.no_grad()
def evaluate(model: LatentLM, stream, device, sp, n_batches: int = 4) -> float:
    model.eval()
    total = torch.zeros((), device=device)
    for _ in range(n_batches):
        total += local_loss(model, next(stream), device, sp)
    model.train()
    if sp is not None:
        dist.all_reduce(total)
        total /= sp.size
    return float(total) / n_batches


def train(mcfg: ModelConfig, tcfg: TrainConfig, sp=None, log=print) -> LatentLM:
    torch.manual_seed(tcfg.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = LatentLM(mcfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=tcfg.lr)
    stream = batches(mcfg.vocab_size, tcfg.batch_size, tcfg.seq_len, tcfg.seed)
    for step in range(1, tcfg.steps + 1):
        loss = local_loss(model, next(stream), device, sp)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(model, sp)
        torch.nn.utils.clip_grad_norm_(model.parameters(), tcfg.grad_clip)
        optimizer.step()
        if step % tcfg.eval_every == 0:
            held_out = batches(mcfg.vocab_size, tcfg.batch_size, tcfg.seq_len, tcfg.seed + 10_000)
            value = evaluate(model, held_out, device, sp)
            log(f"step {step:4d}  eval loss {value:.4f}  ppl {math.exp(value):.2f}")
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small latent-attention model")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--seq-len", type=int, default=64)
    parser.add_argument("--decode-dtype", choices=["float32", "bfloat16"], default="float32")
    args = parser.parse_args()
    sp = init_sequence_parallel()
    quiet = sp is not None and sp.rank != 0
    tcfg = TrainConfig(steps=args.steps, batch_size=args.batch_size, seq_len=args.seq_len)
    model = train(ModelConfig(), tcfg, sp, log=(lambda *_: None) if quiet else print)
    if not quiet:
        model = model.to(getattr(torch, args.decode_dtype))
        prompts = [[BOS, 2, 4, 6], [BOS, 10, 11, 12], [BOS, 5, 10, 15], [BOS, 30, 33, 36]]
        print("completions:", generate(model, prompts, new_tokens=6).tolist())
    if sp is not None:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
