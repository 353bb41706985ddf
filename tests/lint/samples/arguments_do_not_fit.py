"""More samples of arguments-do-not-fit."""

BAD = (
    """\
import torch

class Down(torch.nn.Module):
    def __init__(self, size, normed):
        super().__init__()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down = Down(64)
""",
)

GOOD = (
    """\
import torch

class Down(torch.nn.Module):
    def __init__(self, size, normed):
        super().__init__()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down = Down(64, normed=True)
""",
)
