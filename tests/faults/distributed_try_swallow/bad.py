import logging
import torch
import torch.distributed as dist

logger = logging.getLogger(__name__)


def sync_stats(compute, batch, device):
    t = torch.zeros(2, device=device)
    try:
        t += compute(batch)
        dist.all_reduce(t)  # FAULT: collective-in-swallowing-try
    except RuntimeError as e:
        logger.warning("skipped a batch: %s", e)
    return (t / dist.get_world_size()).tolist()


def reduce_or_die(t):
    try:
        t = t.float().contiguous()
        dist.all_reduce(t)
    except RuntimeError:
        logger.exception("could not reduce")
        raise
    return t


def main():
    dist.init_process_group("gloo")
    try:
        print(sync_stats(torch.sum, torch.ones(3), "cpu"), reduce_or_die(torch.ones(1)))
    finally:
        dist.destroy_process_group()


main()
