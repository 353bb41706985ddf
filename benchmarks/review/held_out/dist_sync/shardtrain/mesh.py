"""Layout of the ranks: tensor-parallel groups of neighbours, replicas across them."""
import os
from dataclasses import dataclass
from typing import Any, List

import torch
import torch.distributed as dist


def coordinates(rank: int, world: int, tp: int):
    """(dp_rank, tp_rank) of a global rank."""
    if world % tp:
        raise ValueError(f"world size {world} is not divisible by tp={tp}")
    return rank % (world // tp), rank % tp


def tp_groups(world: int, tp: int) -> List[List[int]]:
    return [list(range(start, start + tp)) for start in range(0, world, tp)]


def dp_groups(world: int, tp: int) -> List[List[int]]:
    return [list(range(first, world, tp)) for first in range(tp)]


@dataclass
class Mesh:
    rank: int = 0
    world: int = 1
    tp: int = 1
    dp: int = 1
    tp_rank: int = 0
    dp_rank: int = 0
    tp_group: Any = None
    dp_group: Any = None
    device: torch.device = torch.device("cpu")

    @classmethod
    def create(cls, tp: int) -> "Mesh":
        world = int(os.environ.get("WORLD_SIZE", "1"))
        use_cuda = torch.cuda.is_available()
        device = torch.device("cpu")
        if use_cuda:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(device)
        if world == 1:
            coordinates(0, 1, tp)
            return cls(device=device)
        dist.init_process_group("nccl" if use_cuda else "gloo")
        rank = dist.get_rank()
        dp_rank, tp_rank = coordinates(rank, world, tp)
        mesh = cls(rank, world, tp, world // tp, tp_rank, dp_rank, device=device)
        for ranks in tp_groups(world, tp):
            group = dist.new_group(ranks)
            if rank in ranks:
                mesh.tp_group = group
        for ranks in dp_groups(world, tp):
            group = dist.new_group(ranks)
            if rank in ranks:
                mesh.dp_group = group
        return mesh

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def sum_over_replicas(self, t: torch.Tensor) -> torch.Tensor:
        if self.dp > 1:
            dist.all_reduce(t, group=self.dp_group)
        return t

    def any_rank(self, flag: bool) -> bool:
        """True everywhere if it is true on one rank."""
        if self.world == 1:
            return flag
        t = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return bool(t.item())

    def close(self) -> None:
        if self.world > 1:
            dist.destroy_process_group()
