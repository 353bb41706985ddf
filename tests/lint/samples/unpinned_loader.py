"""More samples of unpinned-loader."""

BAD = (
    """\
from torch.utils.data import DataLoader

def train(dataset, model):
    train_loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=False)
    for step, batch in enumerate(train_loader):
        model(**{k: v.cuda() for k, v in batch.items()})
""",
    """\
from torch.utils.data import DataLoader

def make_loaders(train_set, test_set):
    training = DataLoader(train_set, batch_size=64, num_workers=8)
    testing = DataLoader(test_set, batch_size=64, num_workers=8)
    return training, testing

def train(train_set, test_set, model):
    first, second = make_loaders(train_set, test_set)
    for x, y in first:
        model(x.cuda(), y.cuda())
""",
)

GOOD = (
    """\
import torch
from torch.utils.data import DataLoader

def train(dataset, model):
    loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
    for x, y in loader:
        model(x.cuda(non_blocking=True), y.cuda(non_blocking=True))
""",
    """\
import torch
from torch.utils.data import DataLoader

def train(dataset, model):
    model = model.cuda()
    loader = DataLoader(dataset, batch_size=64, num_workers=8)
    for x in loader:
        print(x.shape)
""",
    """\
import torch
from torch.utils.data import DataLoader

def train(dataset, model):
    # never on cuda
    device = torch.device('cpu')
    loader = DataLoader(dataset, batch_size=64, num_workers=8)
    for x in loader:
        model(x.to(device))
""",
    """\
from torch.utils.data import DataLoader

def make_loaders(train_set, test_set):
    training = DataLoader(train_set, batch_size=64, pin_memory=True)
    testing = DataLoader(test_set, batch_size=64)
    return training, testing

def train(train_set, test_set, model):
    first, second = make_loaders(train_set, test_set)
    for x, y in first:
        model(x.cuda(), y.cuda())
    for x, y in second:
        print(x.shape)
""",
)

FIXED = (
    """\
@@ -4 +4 @@
-    train_loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=False)
+    train_loader = DataLoader(dataset, batch_size=64, num_workers=8, pin_memory=True)
""",
    """\
@@ -4 +4 @@
-    training = DataLoader(train_set, batch_size=64, num_workers=8)
+    training = DataLoader(train_set, batch_size=64, num_workers=8, pin_memory=True)
""",
)
