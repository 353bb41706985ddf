import os
import torch
import torch.distributed as dist
from torchvision import datasets


def setup():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    return local_rank


def prepare_data(root):
    if dist.get_rank() == 0:
        datasets.CIFAR10(root, download=True)
    dist.barrier()
    return datasets.CIFAR10(root)


def ordered_download(root, rank):
    # first process goes ahead, the rest wait: both sides meet one barrier
    if rank != 0:
        dist.barrier()
    ds = datasets.MNIST(root, download=rank == 0)
    if rank == 0:
        dist.barrier()
    return ds


if __name__ == "__main__":
    local_rank = setup()
    prepare_data("data")
    dist.destroy_process_group()
