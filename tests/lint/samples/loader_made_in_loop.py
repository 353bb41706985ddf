"""More samples of loader-made-in-loop."""

GOOD = (
    """\
from torch.utils.data import DataLoader

def train(dataset, step):
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=8)
    for epoch in range(10):
        for batch in loader:
            step(batch)
""",
    """\
from torch.utils.data import DataLoader

def train(datasets, step):
    for dataset in datasets:
        for batch in DataLoader(dataset, batch_size=64):
            step(batch)
""",
    """\
from torch.utils.data import DataLoader

def train(make, step):
    for epoch in range(10):
        data = make(epoch)
        for batch in DataLoader(data, batch_size=64):
            step(batch)
""",
    """\
from torch.utils.data import DataLoader

class Trainer:
    def train(self, step):
        for epoch in range(10):
            self.refresh(epoch)
            for batch in DataLoader(self.data, batch_size=64):
                step(batch)
""",
)
