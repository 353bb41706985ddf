"""More samples of load-without-weights-only."""

BAD = (
    """\
import dill
import torch

state = torch.load('model.pt', pickle_module=dill)
""",
    """\
import torch
from torch import nn

model = nn.Linear(8, 2)
torch.save(model, 'model.pt')
model = torch.load('model.pt')
""",
    """\
import torch
from torch import nn

model = nn.Linear(8, 2)
torch.save(model.state_dict(), 'model.pt')
model.load_state_dict(torch.load('model.pt'))
""",
)

GOOD = (
    """\
import torch

state = torch.load('model.pt', weights_only=True)
""",
    """\
import torch

def read(path, **options):
    return torch.load(path, **options)
""",
    """\
import json
import torch

state = json.load(open('model.json'))
""",
    """\
import torch

model = torch.jit.load('model.pt')
""",
)

FIXED = (
    "",
    "",
    """\
@@ -6 +6 @@
-model.load_state_dict(torch.load('model.pt'))
+model.load_state_dict(torch.load('model.pt', weights_only=True))
""",
)
