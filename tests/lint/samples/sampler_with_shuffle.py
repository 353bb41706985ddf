"""More samples of sampler-with-shuffle."""

BAD = (
    """\
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler

def loader(data, ranks):
    sampler = SequentialSampler(data) if ranks == 1 else DistributedSampler(data)
    return DataLoader(data, sampler=sampler, shuffle=True)
""",
    """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    sampler = DistributedSampler(data) if ranks > 1 else None
    return DataLoader(data, sampler=sampler, shuffle=True)
""",
    """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    if ranks > 1:
        sampler = DistributedSampler(data)
    else:
        sampler = None
    return DataLoader(data, sampler=sampler, shuffle=True)
""",
)

GOOD = (
    """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    sampler = DistributedSampler(data) if ranks > 1 else None
    return DataLoader(data, shuffle=sampler is None, sampler=sampler)
""",
    """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    sampler = None
    if ranks > 1:
        sampler = DistributedSampler(data)
        return DataLoader(data, sampler=sampler)
    return DataLoader(data, shuffle=True, sampler=sampler)
""",
    """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    sampler = DistributedSampler(data) if ranks > 1 else None
    if sampler is None:
        return DataLoader(data, shuffle=True, sampler=sampler)
    return DataLoader(data, sampler=sampler)
""",
    """\
from torch.utils.data import DataLoader, DistributedSampler

def loader(data, ranks):
    if ranks > 1:
        sampler = DistributedSampler(data)
        first = DataLoader(data, sampler=sampler)
    else:
        sampler = None
        first = DataLoader(data, sampler=sampler, shuffle=True)
    return first
""",
)

FIXED = (
    """\
@@ -5 +5 @@
-    return DataLoader(data, sampler=sampler, shuffle=True)
+    return DataLoader(data, sampler=sampler, shuffle=False)
""",
    """\
@@ -5 +5 @@
-    return DataLoader(data, sampler=sampler, shuffle=True)
+    return DataLoader(data, sampler=sampler, shuffle=sampler is None)
""",
    """\
@@ -8 +8 @@
-    return DataLoader(data, sampler=sampler, shuffle=True)
+    return DataLoader(data, sampler=sampler, shuffle=sampler is None)
""",
)
