"""More samples of iterator-next-method."""

BAD = (
    """\
import torch

class Balanced:
    def __init__(self, loaders):
        self.iter_list = [iter(loader) for loader in loaders]

    def batch(self, i):
        return self.iter_list[i].next()
""",
)
FIXED = (
    """\
@@ -8 +8 @@
-        return self.iter_list[i].next()
+        return next(self.iter_list[i])
""",
)
GOOD = (
    """\
import torch

def first(loader, prefetcher):
    data = next(iter(loader))
    return data, prefetcher.next()
""",
)
