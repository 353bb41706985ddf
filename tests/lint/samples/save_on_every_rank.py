"""More samples of save-on-every-rank."""

BAD = (
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

class Runner:
    def __init__(self, net, gpu, save_interval):
        self.net = DDP(net.to(gpu), device_ids=[gpu])
        self.save_interval = save_interval

    def snapshot(self, epoch):
        torch.save(self.net.module.state_dict(), f"snapshot-{epoch}.pt")

    def fit(self, epochs):
        for epoch in range(epochs):
            self.epoch(epoch)
            if epoch % self.save_interval == 0:
                self.snapshot(epoch)

def main(net, gpu):
    torch.distributed.init_process_group("nccl")
    runner = Runner(net, gpu, 10)
    runner.fit(100)
""",
)

GOOD = (
    """\
import torch
import torch.distributed as dist

def main(model, loader, rank):
    dist.init_process_group("nccl")
    train(model, loader)
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
    torch.save(model.optimizer.state_dict(), f"optimizer-{rank}.pt")
""",
    """\
import torch
import torch.distributed as dist

def save(model, path):
    torch.save(model.state_dict(), path)

def main(model, rank):
    dist.init_process_group("nccl")
    if rank == 0:
        save(model, "model.pt")
""",
    """\
import torch
import torch.distributed as dist

def save(model, path):
    if dist.get_rank() != 0:
        return
    torch.save(model.state_dict(), path)

def main(model, args):
    dist.init_process_group("nccl")
    save(model, "model.pt")
    if args.is_main:
        torch.save(model, "all.pt")
""",
    """\
import torch

def main(model):
    torch.save(model.state_dict(), "model.pt")
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

class Runner:
    def __init__(self, net, gpu, save_interval):
        self.gpu_id = gpu
        self.net = DDP(net.to(gpu), device_ids=[gpu])
        self.save_interval = save_interval

    def snapshot(self, epoch):
        torch.save(self.net.module.state_dict(), f"snapshot-{epoch}.pt")

    def export(self):
        torch.save(self.net.module, "net.pt")

    def last(self):
        torch.save(self.net.module, "last.pt")

    def fit(self, epochs):
        for epoch in range(epochs):
            if self.gpu_id == 0 and epoch % self.save_interval == 0:
                self.snapshot(epoch)

def main(net, rank):
    runner = Runner(net, rank, 10)
    runner.fit(100)
    if rank == 0:
        runner.last()
""",
    """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

class Runner:
    def __init__(self, net):
        self.net = DDP(net)

    def write(self):
        torch.save(self.net.module, "net.pt")

    def finish(self):
        self.write()

def main(net, rank):
    runner = Runner(net)
    if rank == 0:
        runner.finish()
""",
)
