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
    """\
import torch

def predict(path, x):
    net = torch.load(path, map_location='cpu')
    net.eval()
    return net(x)
""",
    """\
import torch

net = torch.load('net.pt').to('cuda')
""",
    """\
import torch

def weights(path):
    saved = torch.load(path)
    return saved['model'].float().state_dict()
""",
    """\
import torch

class Server:
    def __init__(self, path):
        self.net = torch.load(path)

    def answer(self, x):
        return self.net(x)
""",
    """\
import torch

def weights(path, net):
    saved = torch.load(path)
    net.load_state_dict(saved['model'])
    return saved['epoch']
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
    "",
    "",
    "",
    "",
    """\
@@ -4 +4 @@
-    saved = torch.load(path)
+    saved = torch.load(path, weights_only=True)
""",
)
