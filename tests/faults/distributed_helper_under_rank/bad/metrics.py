import torch
import torch.distributed as dist


def reduce_mean(value, device):
    t = torch.as_tensor(float(value), device=device)
    dist.all_reduce(t)
    return t / dist.get_world_size()


def is_main_process():
    return dist.get_rank() == 0


def log(message):
    if is_main_process():
        print(message, flush=True)
