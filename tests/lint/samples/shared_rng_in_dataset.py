"""More samples of shared-rng-in-dataset."""

BAD = (
    """\
import random
import torch

RNG = random.Random(7)

class Crops(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return self.crop(self.images[i])

    def crop(self, image):
        at = RNG.randint(0, 32)
        return image[:, at:]
""",
)

GOOD = (
    """\
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed + i)
        return self.x[i] + rng.normal() + np.random.rand()

loader = DataLoader(Noisy(x), num_workers=4)
""",
    """\
import numpy as np
from torch.utils.data import Dataset

class Shuffled(Dataset):
    def __init__(self, x):
        rng = np.random.RandomState(0)
        self.order = rng.permutation(len(x))

    def __getitem__(self, i):
        return self.x[self.order[i]]
""",
    """\
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.rng.normal()

loader = DataLoader(Noisy(), num_workers=0)
""",
    """\
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.rng.normal()

def seed(worker):
    torch.utils.data.get_worker_info().dataset.rng = np.random.default_rng(worker)

loader = DataLoader(Noisy(), num_workers=2, worker_init_fn=seed)
""",
)
