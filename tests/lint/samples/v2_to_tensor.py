"""More samples of v2-to-tensor."""

BAD = (
    """\
from torchvision.transforms.v2 import ToTensor

t = ToTensor()
""",
)

GOOD = (
    """\
import torch
from torchvision import transforms

t = transforms.ToTensor()
""",
)

FIXED = ("",)
