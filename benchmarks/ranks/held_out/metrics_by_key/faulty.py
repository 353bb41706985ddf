"""Metrics are reduced key by key, and the keys differ between ranks.

Origin: Lightning#19106: log_dict keys differ per rank
Expect: DR601 DR602 DR603
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
metrics = {"loss": torch.tensor(1.0), "accuracy": torch.tensor(0.5)}
if rank == 1:
    metrics["skipped"] = torch.tensor(1.0)
for name in sorted(metrics):
    dist.all_reduce(metrics[name])
dist.barrier()
dist.destroy_process_group()
