"""More samples of collective-in-swallowing-try."""

GOOD = (
    """\
import torch.distributed as dist

def finish():
    try:
        dist.barrier()
    except Exception:
        pass
""",
    """\
import torch.distributed as dist

def load(path, x):
    try:
        x = read(path)
        dist.broadcast(x, src=0)
    except FileNotFoundError:
        return None
    try:
        import apex
        dist.barrier()
    except ImportError:
        pass
""",
    """\
import os
import torch
import torch.distributed as dist

def start():
    try:
        rank = int(os.getenv("RANK", -1))
        dist.init_process_group(init_method="env://")
        dist.barrier()
    except Exception:
        print("not distributed")
""",
)
