"""More samples of misspelt-special-method."""

GOOD = (
    """\
import torch

class Number(torch.nn.Module):
    def __int__(self):
        return 3

    def _init(self):
        return self.init_()
""",
)
