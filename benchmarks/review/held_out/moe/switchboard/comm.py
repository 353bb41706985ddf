import os

import torch
import torch.distributed as dist


def setup():
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return rank(), world()


def ready():
    return dist.is_available() and dist.is_initialized()


def rank():
    return dist.get_rank() if ready() else 0


def world():
    return dist.get_world_size() if ready() else 1


def all_sum(t):
    """Sum over ranks, in a new tensor."""
    t = t.clone()
    if ready():
        dist.all_reduce(t)
    return t


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, send, recv):
        ctx.send, ctx.recv = send, recv
        out = x.new_empty((sum(recv), *x.shape[1:]))
        dist.all_to_all_single(out, x.contiguous(), recv, send)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty((sum(ctx.send), *grad.shape[1:]))
        dist.all_to_all_single(out, grad.contiguous(), ctx.send, ctx.recv)
        return out, None, None


def exchange(x, send, recv):
    """send[r] rows of x go to rank r, recv[r] rows come from it."""
    if not ready() or x.shape[0] == 0:
        return x
    return _Exchange.apply(x, send, recv)


def exchange_counts(counts):
    """counts[r, e]: rows for local expert e of rank r. Returns rows from r for e."""
    if not ready():
        return counts
    out = torch.empty_like(counts)
    for e in range(counts.shape[1]):
        column = torch.empty_like(counts[:, e])
        dist.all_to_all_single(column, counts[:, e].contiguous())
        out[:, e] = column
    return out


def sync_grads(model):
    """Mean gradient of the global batch, with one flat all-reduce."""
    if not ready():
        return
    shared = []
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        shared.append(p.grad)
    flat = torch.cat([g.flatten() for g in shared])
    dist.all_reduce(flat)
    flat /= world()
    for g, new in zip(shared, flat.split([g.numel() for g in shared])):
        g.copy_(new.view_as(g))


def broadcast_shared(model):
    if not ready():
        return
    for t in list(model.parameters()) + list(model.buffers()):
        if not getattr(t, "is_expert", False):
            dist.broadcast(t.data, 0)
