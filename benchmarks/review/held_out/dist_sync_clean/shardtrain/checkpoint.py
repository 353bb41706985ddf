import os

import torch
import torch.distributed as dist


def gather_full_state(model, mesh):
    """State dict of the unsplit model. The shards come from the tensor-parallel group."""
    full = {}
    for name, p in model.named_parameters():
        value = p.detach()
        if mesh.tp > 1 and hasattr(p, "shard_dim"):
            parts = [torch.empty_like(value) for _ in range(mesh.tp)]
            dist.all_gather(parts, value.contiguous(), group=mesh.tp_group)
            value = torch.cat(parts, dim=p.shard_dim)
        full[name] = value.cpu().clone()
    return full


def state_path(out, mesh):
    return os.path.join(out, f"train_state_tp{mesh.tp_rank}.pt")


def save(out, model, optimizer, epoch, mesh):
    """export.pt for inference, one training state per tensor-parallel rank."""
    os.makedirs(out, exist_ok=True)
    full = gather_full_state(model, mesh)
    if mesh.is_main:
        torch.save(full, os.path.join(out, "export.pt"))
    if mesh.dp_rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, state_path(out, mesh))


def resume(out, model, optimizer, mesh):
    """Number of finished epochs, 0 when there is nothing to load."""
    path = state_path(out, mesh)
    if not os.path.exists(path):
        return 0
    state = torch.load(path, map_location=mesh.device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]
