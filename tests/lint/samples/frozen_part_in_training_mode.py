"""More samples of frozen-part-in-training-mode."""

GOOD = (
    """\
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

class Task:
    def build(self):
        coder = Encoder()
        for parameter in coder.parameters():
            parameter.requires_grad = False
        self.tokenizer = coder
        self.tokenizer.eval()
""",
)
