"""More samples of old-spectral-norm."""

BAD = (
    """\
import torch.nn as nn
from torch.nn.utils import spectral_norm

layer = spectral_norm(nn.Conv2d(3, 8, 3))
""",
)

GOOD = (
    """\
import torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm

layer = spectral_norm(nn.Conv2d(3, 8, 3))
""",
    """\
def spectral_norm(layer):
    import torch
    return layer

layer = spectral_norm(None)
""",
)
