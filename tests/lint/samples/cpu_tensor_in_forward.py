"""More samples of cpu-tensor-in-forward."""

BAD = (
    """\
import torch
from torch import nn

def mask_of(lengths, longest):
    return torch.arange(longest).expand(len(lengths), longest) < torch.from_numpy(lengths)

class Attend(nn.Module):
    def forward(self, scores, lengths):
        mask = mask_of(lengths, scores.size(1))
        noise = torch.rand(3)
        return scores.view(1, -1).masked_fill(mask, 0.0), noise

def run(x, lengths):
    return Attend().cuda()(x, lengths)
""",
)

GOOD = (
    """\
import torch
from torch import nn

class Scaled(nn.Module):
    def forward(self, x, n):
        table = torch.ones(n)
        if x.is_cuda:
            table = table.cuda()
        scale = torch.tensor(2.0)
        return x.view(-1) * table * scale * n

def run(x):
    return Scaled().cuda()(x, 3)
""",
)
