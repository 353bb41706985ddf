"""More samples of loader-workers-restarted."""

BAD = (
    """\
from torch.utils.data import DataLoader

def main(args, dataset, model):
    loader = DataLoader(
        dataset,
        batch_size=64,
        num_workers=args.workers,
    )
    for epoch in range(args.epochs):
        train(model, loader)
""",
)

GOOD = (
    """\
from torch.utils.data import DataLoader

def train(dataset, step):
    loader = DataLoader(dataset, num_workers=8, persistent_workers=True)
    for epoch in range(10):
        for batch in loader:
            step(batch)
""",
    """\
from torch.utils.data import DataLoader

def train(dataset, step):
    loader = DataLoader(dataset, batch_size=64, num_workers=8)
    for batch in loader:
        step(batch)
""",
    """\
from torch.utils.data import DataLoader

def train(dataset, step):
    loader = DataLoader(dataset, batch_size=64)
    for epoch in range(10):
        for batch in loader:
            step(batch)
""",
    """\
from torch.utils.data import DataLoader

def train(datasets, step):
    for dataset in datasets:
        loader = DataLoader(dataset, batch_size=64, num_workers=8)
        for batch in loader:
            step(batch)
""",
    """\
from torch.utils.data import DataLoader

def validate(folds, fit):
    for fold in folds:
        loader = DataLoader(fold, batch_size=64, num_workers=8)
        fit(loader)

def train(dataset, step):
    loader = DataLoader(dataset, batch_size=64, num_workers=8, persistent_workers=True)
    for epoch in range(10):
        for batch in loader:
            step(batch)
""",
)

FIXED = (
    """\
@@ -7 +7 @@
-        num_workers=args.workers,
+        num_workers=args.workers, persistent_workers=args.workers > 0,
""",
)
