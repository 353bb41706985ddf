"""Process groups and devices."""

import os

import torch
import torch.distributed as dist


def start():
    """Join the process group; rank, world size and device."""
    rank = int(os.environ["RANK"])
    world = int(os.environ["WORLD_SIZE"])
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
        device = torch.device("cuda", local)
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return rank, world, device


def stop():
    dist.destroy_process_group()


def groups_of(world, size):
    """Groups of neighbouring ranks; every rank makes all of them."""
    first = dist.get_rank() // size * size
    members = list(range(first, first + size))
    if dist.get_rank() == first:
        return [dist.new_group(members)]
    return [dist.group.WORLD]
