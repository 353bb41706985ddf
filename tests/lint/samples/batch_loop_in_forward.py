"""More samples of batch-loop-in-forward."""

BAD = (
    """\
import torch

class Pool(torch.nn.Module):
    def forward(self, x, mask):
        batch_size = x.shape[0]
        out = torch.zeros(batch_size, x.shape[2], device=x.device)
        for b in range(batch_size):
            out[b] = x[b][mask[b]].mean(0)
        return out
""",
)

GOOD = (
    """\
import torch

class Recurrent(torch.nn.Module):
    def forward(self, x, h):
        for i in range(x.size(0)):
            h = self.cell(x[i], h)
        return h
""",
    """\
import torch

class Stack(torch.nn.Module):
    def forward(self, x):
        for i in range(len(self.layers)):
            x = self.layers[i](x)
        return x
""",
    """\
import torch

class Names(torch.nn.Module):
    def forward(self, x, names):
        batch_size = x.size(0)
        out = []
        for i in range(batch_size):
            out.append(names[i])
        return self.body(x), out
""",
    """\
import torch

def check(x, model):
    for i in range(x.size(0)):
        assert model(x[i]).mean() > 0
""",
)
