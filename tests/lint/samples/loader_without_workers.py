"""More samples of loader-without-workers."""

BAD = (
    """\
import torch
from torch.utils import data

device = torch.device('cuda')
loader = data.DataLoader(open_images('train'), batch_size=64, num_workers=0)
""",
)

GOOD = (
    """\
import torch
from torch.utils.data import DataLoader

def make(dataset, device):
    return DataLoader(dataset, batch_size=64, num_workers=8)
""",
    """\
import torch
from torch.utils.data import DataLoader

def make(dataset, device, options):
    return DataLoader(dataset, batch_size=64, **options)
""",
    """\
import torch
from torch.utils.data import DataLoader, TensorDataset

def make(x, y, device):
    dataset = TensorDataset(x, y)
    return DataLoader(dataset, batch_size=64)
""",
    """\
import torch
from torch.utils.data import DataLoader

def make(dataset, device, workers):
    return DataLoader(dataset, 64, True, None, None, workers)
""",
)
