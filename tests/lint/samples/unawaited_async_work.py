"""More samples of unawaited-async-work."""

BAD = (
    """\
import torch.distributed as dist

def swap(x, y, other):
    handle = dist.isend(x, dst=other)
    dist.recv(y, src=other)
    return y
""",
)

GOOD = (
    """\
import torch.distributed as dist

def average(xs, n):
    handles = [dist.all_reduce(x, async_op=True) for x in xs]
    for handle in handles:
        handle.wait()
    work = dist.all_reduce(xs[0], async_op=True)
    work.wait()
    return dist.all_reduce(xs[1], async_op=True)
""",
    """\
import torch.distributed as dist

def average(self, x, flag):
    self.work = dist.all_reduce(x, async_op=True)
    dist.all_reduce(x, async_op=flag)
    dist.all_reduce(x)
    dist.isend(x, dst=1).wait()
""",
    """\
import torch.distributed as dist

def gather(parts):
    for source, part in enumerate(parts):
        dist.broadcast(part, src=source, async_op=True)
    dist.barrier()
    return parts
""",
)

FIXED = ("",)
