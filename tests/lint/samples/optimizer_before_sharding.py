"""More samples of optimizer-before-sharding."""

BAD = (
    """\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def build(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = FSDP(model)
    return model, optimizer
""",
)

GOOD = (
    """\
import torch
from torch.distributed.fsdp import fully_shard

def build(model):
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return model, optimizer
""",
    """\
import torch
from torch.distributed.fsdp import fully_shard

def build(model, teacher):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    fully_shard(teacher)
    return optimizer
""",
    """\
import torch
from torch.distributed.fsdp import fully_shard

def build(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return optimizer
""",
)
