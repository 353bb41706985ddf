import math

import torch
import torch.distributed as dist

from . import comm
from .config import get_args
from .data import stream
from .model import Tagger, tag_loss


def autocast(args, device):
    return torch.autocast(device, dtype=torch.bfloat16, enabled=args.bf16)


@torch.no_grad()
def evaluate(model, args, device, n=4):
    model.eval()
    hit = torch.zeros(2, device=device)
    batches = stream(args, seed=99_991 + comm.rank())
    for _ in range(n):
        ids, tags = (t.to(device) for t in next(batches))
        with autocast(args, device):
            logits, _ = model(ids)
        real = tags >= 0
        hit[0] += (logits.argmax(-1) == tags)[real].sum()
        hit[1] += real.sum()
    model.train()
    hit = comm.all_sum(hit)
    return (hit[0] / hit[1]).item()


def utilisation(load):
    """Entropy of the expert loads, 1.0 when all experts are used alike."""
    p = load / load.sum().clamp_min(1)
    return -(p * p.clamp_min(1e-9).log()).sum().item() / math.log(len(p))


def ckpt_path(path):
    return f"{path}.rank{comm.rank()}"


def save(path, model, opt, step):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step}, ckpt_path(path))


def load(path, model, opt):
    state = torch.load(ckpt_path(path), weights_only=True)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    return state["step"]


def run(args, log=print):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # every rank draws its own experts, the rest is copied from rank 0
    torch.manual_seed(args.seed + comm.rank())
    model = Tagger(args).to(device)
    comm.broadcast_shared(model)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    start = load(args.resume, model, opt) if args.resume else 0
    data = stream(args, seed=args.seed + 1000 * comm.rank() + start)
    acc = 0.0
    for step in range(start + 1, args.steps + 1):
        ids, tags = (t.to(device) for t in next(data))
        with autocast(args, device):
            logits, aux = model(ids)
        # real tokens per rank, averaged over the ranks
        n_tags = comm.all_sum((tags >= 0).sum()) / comm.world()
        loss = tag_loss(logits, tags, n_tags) + args.aux_weight * aux
        opt.zero_grad()
        loss.backward()
        comm.sync_grads(model)
        opt.step()
        usage = model.routers()[0].load.clone()
        for router in model.routers():
            router.update_bias(args.bias_rate, comm.all_sum)
        if step % 10 == 0 or step == args.steps:
            acc = evaluate(model, args, device)
            drop = float(model.layers[0].moe.dropped)
            log(
                f"step {step} loss {loss.item():.4f} aux {aux.item():.3f} acc {acc:.3f} "
                f"use {utilisation(usage):.3f} dropped {drop:.3f}"
            )
    if args.save:
        save(args.save, model, opt, args.steps)
    return model, acc


def main():
    rank, world = comm.setup()
    run(get_args(), log=print if rank == 0 else lambda *a: None)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
