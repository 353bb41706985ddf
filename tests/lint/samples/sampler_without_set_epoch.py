"""More samples of sampler-without-set-epoch."""

BAD = (
    """\
import torch.utils.data as data_utils
from torch.utils.data import DistributedSampler

def loader(data):
    return data_utils.DataLoader(data, sampler=DistributedSampler(data, shuffle=True))

def main(train, n):
    batches = loader(train)
    for epoch in range(n):
        for batch in batches:
            step(batch)
""",
    """\
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def main(data, args):
    sampler = DistributedSampler(data, shuffle=args.shuffle)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    for epoch in range(args.epochs):
        for batch in loader:
            step(batch)
""",
)

GOOD = (
    """\
from torch.utils.data.distributed import DistributedSampler

def main(data, epochs):
    sampler = DistributedSampler(data)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        train(sampler)
""",
    """\
from torch.utils.data.distributed import DistributedSampler

def main(data, epochs):
    val_sampler = DistributedSampler(data)
    sampler = DistributedSampler(data, shuffle=False)
    for epoch in range(epochs):
        train(sampler)
""",
    """\
from torch.utils.data.distributed import DistributedSampler

def loader(data):
    return DistributedSampler(data)
""",
    """\
from torch.utils.data.distributed import DistributedSampler

def begin(sampler, epoch):
    sampler.set_epoch(epoch)

def main(data, epochs):
    sampler = DistributedSampler(data)
    for epoch in range(epochs):
        begin(sampler, epoch)
        train(sampler)
""",
)

FIXED = (
    "",
    """\
@@ -7,0 +8 @@
+        sampler.set_epoch(epoch)
""",
)
