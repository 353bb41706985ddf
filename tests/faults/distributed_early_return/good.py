import torch
import torch.distributed as dist


def gather_metrics(values, rank, world_size):
    buf = [None] * world_size
    dist.all_gather_object(buf, values)
    if rank != 0:
        return None
    merged = {}
    for part in buf:
        merged.update(part)
    return merged


def average(t):
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return t
    dist.all_reduce(t)
    return t / dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    out = gather_metrics({rank: 1.0}, rank, world)
    print(out, average(torch.ones(1)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
