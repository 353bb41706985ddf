"""One rank reduces a float64 metric, the others float32.

Origin: a metric built from Python numbers on one rank only
Expect: clean
World: 4
"""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
import numpy as np

metric = torch.from_numpy(np.zeros(1)).float() if rank == 0 else torch.zeros(1)
dist.all_reduce(metric)
dist.barrier()
dist.destroy_process_group()
