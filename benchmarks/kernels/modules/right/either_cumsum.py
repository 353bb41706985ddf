# problem: modules/problems/either_cumsum.py
# implementation: torch
# mechanism: a record with names, an enumeration, a match and a walrus: plain Python around one operator

from enum import Enum
from typing import NamedTuple

import torch


class Way(Enum):
    UP = 1
    DOWN = 2


class Plan(NamedTuple):
    way: Way
    side: int = 1


class ModelNew(torch.nn.Module):
    def forward(self, x, mode):
        match Plan(Way.UP if mode else Way.DOWN):
            case Plan(way=Way.UP) as plan:
                return torch.cumsum(x, dim=side) if (side := plan.side) < x.dim() else x
            case plan:
                return torch.cumsum(x.flip(plan.side), plan.side).flip(plan.side)
