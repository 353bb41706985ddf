"""Base classes of torch's layers that have no public name."""

from torch.nn.modules.batchnorm import _BatchNorm as BatchNormBase
from torch.nn.modules.batchnorm import _NormBase as NormBase
from torch.nn.modules.dropout import _DropoutNd as DropoutBase
from torch.nn.modules.loss import _Loss as LossBase
from torch.nn.modules.loss import _WeightedLoss as WeightedLossBase

__all__ = ["BatchNormBase", "DropoutBase", "LossBase", "NormBase", "WeightedLossBase"]
