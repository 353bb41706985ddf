"""More samples of nccl-without-set-device."""

GOOD = (
    """\
import os
import torch
import torch.distributed as dist

def main(net):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    net.cuda()
""",
    """\
import torch
import torch.distributed as dist

def main(net, rank):
    dist.init_process_group(backend="nccl", device_id=torch.device(f"cuda:{rank}"))
    net.cuda()
""",
    """\
import torch
import torch.distributed as dist

def main(net):
    dist.init_process_group("gloo")
    net.cuda()
""",
)
