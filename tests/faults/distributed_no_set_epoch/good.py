import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def worker(rank, world_size, dataset, val_set, make_model, epochs):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "12355")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DDP(make_model().to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=True)
    flags = dict(num_workers=4, pin_memory=True, persistent_workers=True)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler, **flags)
    val_sampler = DistributedSampler(val_set, shuffle=False)
    val_loader = DataLoader(val_set, 64, sampler=val_sampler, **flags)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            x, y = x.to(rank, non_blocking=True), y.to(rank, non_blocking=True)
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
    dist.destroy_process_group()
    return len(val_loader)


if __name__ == "__main__":
    mp.spawn(worker, args=(2, None, None, None, 3), nprocs=2)
