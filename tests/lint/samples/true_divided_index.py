"""More samples of true-divided-index."""

BAD = (
    """\
import torch

def beams(scores, states, width):
    best = scores.argmax(dim=-1)
    row = best / width
    return states.index_select(0, row)
""",
    """\
import torch

def rows(flat, table):
    row = torch.div(flat.long(), 8)
    return table[row]
""",
    """\
import torch

def beams(scores, states, words):
    best, where = scores.flatten(1).topk(4)
    parents = where / words
    return states.index_select(0, parents)
""",
    """\
import torch

def rows(scores, table):
    _, where = torch.max(scores, 1)
    return table[where / 8]
""",
)

GOOD = (
    """\
import torch

def rows(scores, table):
    best = torch.argmax(scores)
    return table[(best / 8).long()]
""",
    """\
import torch

def share(scores, table):
    best = torch.argmax(scores)
    fraction = best / 8
    return table * fraction
""",
    """\
import torch

def rows(flat, table):
    return table[torch.div(flat.long(), 8, rounding_mode="trunc")]
""",
    """\
import torch

def shares(scores, table):
    best, where = scores.topk(4)
    low, high = torch.max(scores), torch.min(scores)
    return table[best / 8], table[high / 8]
""",
)

FIXED = (
    """\
@@ -5 +5 @@
-    row = best / width
+    row = best // width
""",
    """\
@@ -4 +4 @@
-    row = torch.div(flat.long(), 8)
+    row = torch.div(flat.long(), 8, rounding_mode="floor")
""",
    """\
@@ -5 +5 @@
-    parents = where / words
+    parents = where // words
""",
    """\
@@ -5 +5 @@
-    return table[where / 8]
+    return table[where // 8]
""",
)
