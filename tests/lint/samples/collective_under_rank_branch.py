"""More samples of collective-under-rank-branch."""

BAD = (
    """\
import torch
import torch.distributed as dist

def save(model, path):
    if dist.get_rank() != 0:
        return
    torch.save(model.state_dict(), path)
    dist.barrier()
""",
    """\
import torch.distributed as dist

def is_main_process():
    return dist.get_rank() == 0

def average(x):
    dist.all_reduce(x)
    return x / dist.get_world_size()

def report(loss):
    if is_main_process():
        print(average(loss))
""",
    """\
def finish(accelerator, metrics):
    # torch and accelerate
    if accelerator.is_main_process:
        return accelerator.gather(metrics).mean()
""",
)

GOOD = (
    """\
import torch.distributed as dist

def first(rank):
    if rank != 0:
        dist.barrier()
    prepare()
    if rank == 0:
        dist.barrier()
""",
    """\
import torch.distributed as dist

def share(rank, x, parts):
    if rank == 0:
        dist.scatter(x, parts, src=0)
    else:
        dist.scatter(x, src=0)
""",
    """\
import torch.distributed as dist

def inside(rank, x, members, group):
    if rank in members:
        dist.all_reduce(x, group=group)
""",
    """\
import torch.distributed as dist

def log(loss, rank):
    dist.all_reduce(loss)
    if rank == 0:
        print(loss.item())
    if rank >= 8:
        raise ValueError(rank)
    dist.barrier()
""",
    """\
import torch.distributed as dist

def send(rank, x):
    if rank == 0:
        dist.send(x, dst=1)
        dist.broadcast(x, src=0)
        return x
    dist.recv(x, src=0)
    dist.broadcast(x, src=0)
    return x
""",
    """\
import torch
import torch.distributed as dist

def evaluate(model, loader, sharded):
    if not sharded and dist.get_rank() != 0:
        return
    for x in loader:
        if sharded:
            dist.broadcast(x, src=0)
        model(x)
""",
    """\
import torch
import torch.distributed as dist

def take_step(optimizer, model, loss_of, rank):
    signal = torch.zeros(1)

    def closure():
        if rank == 0:
            signal.fill_(1)
            dist.broadcast(signal, src=0)
        return loss_of(model)

    if rank == 0:
        optimizer.step(closure)
        signal.fill_(0)
        dist.broadcast(signal, src=0)
    else:
        while True:
            dist.broadcast(signal, src=0)
            if signal.item() == 0:
                break
            closure()
""",
)
