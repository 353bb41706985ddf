import torch.nn as nn
import torch.nn.init as init
from torch.nn import Parameter  # noqa: F401


def weights_init(m):
    if isinstance(m, nn.Conv2d):
        init.xavier_uniform(m.weight)  # FAULT: deprecated-function
        if m.bias is not None:
            init.zeros_(m.bias)
    elif isinstance(m, nn.BatchNorm2d):
        init.normal_(m.weight, 1.0, 0.02)
        init.constant_(m.bias, 0)


net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
net.apply(weights_init)
