"""More samples of device-move-in-dataset."""

BAD = (
    """\
import torch

class Rows(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return torch.tensor(self.rows[i]).to(self.device)
""",
)

GOOD = (
    """\
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]).to(torch.float32)
""",
    """\
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, images):
        self.images = images.cuda()

    def __getitem__(self, i):
        return self.images[i]
""",
    """\
import torch

class Wrapper:
    def __getitem__(self, i):
        return self.dataset[i].cuda()

Dataset = object
""",
)
