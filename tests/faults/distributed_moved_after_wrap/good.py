import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def build(local_rank):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    ema = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = model.to(local_rank)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    ema = ema.to(local_rank)
    return model, ema


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    model, ema = build(local_rank)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        x = torch.randn(4, 3, 32, 32, device=local_rank)
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
    dist.destroy_process_group()


main()
