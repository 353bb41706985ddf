"""Predictions of different length are gathered without padding.

Origin: all_gather needs equal shapes: torch's own documentation
Expect: DR602
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
predictions = torch.randn(10 + rank)
gathered = [torch.empty_like(predictions) for _ in range(world)]
dist.all_gather(gathered, predictions)
dist.barrier()
dist.destroy_process_group()
