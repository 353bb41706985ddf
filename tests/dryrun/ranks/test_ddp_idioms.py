"""Training with DDP as it is usually written: nobody is accused."""

from __future__ import annotations

import pytest

from tests.dryrun.conftest import Run

PROGRAM = """
import contextlib, copy, os, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ways = sys.argv[1].split("-")
dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
device = torch.device("cuda", local)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x):
        return self.out(F.relu(self.norm(self.conv(x))).mean((2, 3)))


net = Net().to(device)
if "syncbn" in ways:
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
model = DDP(net, device_ids=[local])
average = copy.deepcopy(net).eval() if "average" in ways else None
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused="fused" in ways)
scaler = torch.amp.GradScaler("cuda", enabled="amp" in ways)
dtype = torch.float16 if "amp" in ways else torch.bfloat16
data = TensorDataset(torch.randn(32, 3, 6, 6), torch.randint(0, 5, (32,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, 4, sampler=sampler, drop_last=True)
group = 2 if "accumulate" in ways else 1
for epoch in range(2):
    sampler.set_epoch(epoch)
    model.train()
    for index, (x, y) in enumerate(loader):
        is_last = (index + 1) % group == 0
        with contextlib.nullcontext() if is_last else model.no_sync():
            with torch.autocast("cuda", dtype, enabled=bool({"amp", "bf16"} & {*ways})):
                loss = F.cross_entropy(model(x.to(device)), y.to(device)) / group
            scaler.scale(loss).backward()
        if not is_last:
            continue
        if "clip" in ways:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if not torch.isfinite(norm):
                raise RuntimeError("the loss is not finite")
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if average is not None:
            with torch.no_grad():
                for kept, new in zip(average.parameters(), net.parameters()):
                    kept.lerp_(new, 0.01)
                for kept, new in zip(average.buffers(), net.buffers()):
                    kept.copy_(new)
    model.eval()
    right = torch.zeros(2, device=device)
    with torch.no_grad():
        for x, y in loader:
            right[0] += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
            right[1] += len(y)
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
    dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "ways", ["amp-clip-accumulate-average", "bf16-clip-fused", "syncbn-amp", "syncbn"]
)
def test_correct_programs_are_not_accused(ways: str, run: Run) -> None:
    report = run(PROGRAM, ways, world_size=2)
    assert not report.findings
    assert not [gap for gap in report.gaps if gap.failed]
    steps = [item.value for item in report.measures if item.name == "optimizer_steps"]
    assert steps[0] > 0


def test_a_layer_that_waits_for_other_ranks_on_one_alone_is_found(run: Run) -> None:
    text = PROGRAM.replace("model(x.to(device))", "alone(x.to(device))", 1).replace(
        "for epoch", "alone = model if local else net\nfor epoch", 1
    )
    report = run(text, "syncbn", world_size=2)
    assert report.findings
